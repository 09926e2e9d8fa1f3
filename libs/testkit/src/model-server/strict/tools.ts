/** The strict validator's rules about tools that a request offers, and about calls. */
import { isObject, schemaProblems, type Json } from './values.ts';

const legalName = /^[a-zA-Z0-9_-]{1,64}$/;

export function nameProblems(name: unknown, where: string): string[] {
  return typeof name === 'string' && legalName.test(name) ? [] : [`${where}: illegal tool name ${JSON.stringify(name)}`];
}

/** Hosted models take no choice between schemas at the top of one; grammars of local servers do. */
export function choiceProblems(schema: unknown, where: string): string[] {
  return ['oneOf', 'anyOf', 'allOf'].filter((key) => isObject(schema) && schema[key] !== undefined).map((key) => `${where}: its parameters have ${key} at the top`);
}

const legalArgument = /^[a-zA-Z0-9_.-]{1,64}$/;

/** The vendor looks at those at the top, and refuses the whole request for one. */
export function argumentProblems(schema: unknown, where: string): string[] {
  const names = isObject(schema) && isObject(schema['properties']) ? Object.keys(schema['properties']) : [];
  return names.filter((name) => !legalArgument.test(name)).map((name) => `${where}: illegal property key ${JSON.stringify(name)}`);
}

/** `read` finds name and schema in a tool as the wire writes it, and what else is wrong with it. */
export function toolsProblems(tools: unknown, read: (tool: Json, where: string) => { readonly name: unknown; readonly schema: unknown; readonly problems?: readonly string[] }): string[] {
  if (tools === undefined) return [];
  if (!Array.isArray(tools)) return ['tools is not a list'];
  const names = new Set<unknown>();
  return tools.flatMap((tool: unknown, index) => {
    const where = `tools[${index}]`;
    const { name, schema, problems = [] } = read(isObject(tool) ? tool : {}, where);
    const twice = names.has(name) ? [`${where}: the name ${String(name)} is not unique`] : [];
    names.add(name);
    const shape = isObject(schema) && schema['type'] === 'object' ? [] : [`${where}: its parameters are not an object schema`];
    return [...nameProblems(name, where), ...twice, ...shape, ...schemaProblems(schema, where), ...problems];
  });
}
