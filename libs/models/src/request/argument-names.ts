/**
 * Names of arguments for a wire that is particular about them: letters, digits, `_`, `.`, `-`, at most 64, at the top of a schema. There one
 * argument named `filter[id]` has the whole request refused, with every tool in it. Others are renamed, always the same way for the same
 * schema, and what a model says under such a name is put back. Arguments under their own names are taken, too.
 */
import type { ReplyCall, ToolDefinition } from '@treadle/core';

type Schema = Readonly<Record<string, unknown>>;

const legal = /^[a-zA-Z0-9_.-]{1,64}$/;
const longest = 64;

/** By the tool's own name of an argument: the one on the wire, for those that need another. */
function renamed({ properties }: Schema): ReadonlyMap<string, string> {
  const names = Object.keys(isObject(properties) ? properties : {});
  const taken = new Set(names.filter((name) => legal.test(name)));
  return new Map(names.filter((name) => !legal.test(name)).map((name) => {
    const plain = name.replaceAll(/[^a-zA-Z0-9_.-]+/g, '_').slice(0, longest) || '_';
    let made = plain;
    for (let count = 2; taken.has(made); count++) made = `${plain.slice(0, longest - 1 - String(count).length)}_${count}`;
    taken.add(made);
    return [name, made];
  }));
}

/** The schema as the wire takes it; each argument with another name says its own. */
export function withLegalNames(schema: Schema): Schema {
  const names = renamed(schema);
  if (names.size === 0) return schema;
  const { properties, required } = schema;
  return {
    ...schema,
    properties: Object.fromEntries(Object.entries(properties as Schema).map(([name, each]) => {
      const wire = names.get(name);
      return wire === undefined ? [name, each] : [wire, calledBy(name, each)];
    })),
    ...(Array.isArray(required) ? { required: required.map((name: unknown) => names.get(name as string) ?? name) } : {}),
  };
}

function calledBy(name: string, schema: unknown): Schema {
  const own = isObject(schema) ? schema : {};
  const described = typeof own['description'] === 'string' ? `${own['description']} ` : '';
  return { ...own, description: `${described}(the tool calls it ${JSON.stringify(name)})` };
}

/** A call's arguments under the tool's own names. `sent` gives the schema that a model was shown, before its names were made legal. */
export function withOwnNames(call: ReplyCall, tools: readonly ToolDefinition[], sent: (tool: ToolDefinition) => Schema): ReplyCall {
  const tool = tools.find(({ wire_name, name }) => wire_name === call.name || name === call.name);
  const names = tool === undefined ? new Map<string, string>() : renamed(sent(tool));
  if (names.size === 0) return call;
  const own = new Map([...names].map(([name, wire]) => [wire, name]));
  const input = Object.fromEntries(Object.entries(call.input).map(([name, value]) => {
    const known = own.get(name);
    return [known === undefined || Object.hasOwn(call.input, known) ? name : known, value];
  }));
  return { ...call, input };
}

function isObject(value: unknown): value is Schema {
  return value !== null && typeof value === 'object' && !Array.isArray(value);
}
