/** From what the sources offer to what an agent may use: chosen, checked, classed, named. */
import type { ToolDefinition } from '@treadle/core';
import type { ToolCatalogue } from '@treadle/engine';
import { threadCpuMs } from '../arguments/in-time.ts';
import type { SchemaStore } from '../arguments/schema-store.ts';
import type { Offer, OfferedTool } from '../kind.ts';
import type { ToolPolicySource } from '../sources.ts';
import { definitionHash } from './hash.ts';
import { matches, mayMatchBeginning } from './patterns.ts';
import { approvalOf, approvalProblem } from './approval.ts';
import { policyFor } from './policy.ts';
import { wireNames } from './wire-name.ts';

export interface CatalogueRules {
  readonly patterns: readonly string[];
  readonly policies: Readonly<Record<string, ToolPolicySource>>;
  readonly defaultTimeoutMs: number;
  readonly schemas: SchemaStore;
  /** Names that a run has already: they come before others where there is no room for all, and what its patterns lack was told then. */
  readonly first?: ReadonlySet<string>;
  /** Processor time that this thread has used so far, ms. Default: as the system counts it. */
  readonly cpuMs?: () => number;
}

/** Tools of servers that one run may have: each request to a model carries all of them. */
const mostServerTools = 256;
/** Characters of their descriptions and schemas: more than windows have room for. They stand in one event, and in the run's state. */
const mostCharacters = 512 * 1024;
/** For schemas that nobody has looked at before: each of those that are left is looked at by a later run. */
const mostCpuMs = 2000;
/** Sentences that one catalogue says about what is left out. */
const mostProblems = 50;

/** In code-unit order of the names. A tool that cannot be used is left out and named in `problems`. */
export function buildCatalogue(offers: readonly Offer[], rules: CatalogueRules): ToolCatalogue {
  const { kept, surplus } = withinRoom(offers.flatMap((offer) => offer.tools).filter(({ name }) => rules.patterns.some((pattern) => matches(pattern, name))), rules);
  const problems = [...surplus, ...offers.flatMap((offer) => [...offer.problems])];
  const chosen = new Map<string, OfferedTool>();
  const { cpuMs = threadCpuMs } = rules;
  const until = cpuMs() + mostCpuMs;
  for (const tool of kept) {
    const problem = chosen.has(tool.name) ? 'its name is taken already' : schemaProblem(tool, rules.schemas, () => cpuMs() > until);
    if (problem === null) chosen.set(tool.name, tool);
    else problems.push(`Tool ${tool.name} is left out: ${problem}.`);
  }
  problems.push(...[...chosen.values()].flatMap((tool) => approvalProblem(tool, policyOf(tool, rules))), ...(rules.first === undefined ? unmatched(offers, rules.patterns) : []));
  const names = [...chosen.keys()].sort();
  const wire = wireNames(names);
  const tools = names.flatMap((name) => {
    const tool = chosen.get(name);
    return tool === undefined ? [] : [definition(tool, wire.get(name) ?? name, rules)];
  });
  const instructions = Object.assign({}, ...offers.map((offer) => offer.instructions ?? {})) as Readonly<Record<string, string>>;
  return { tools, ...(Object.keys(instructions).length === 0 ? {} : { instructions }), problems: problems.length <= mostProblems ? problems : [...problems.slice(0, mostProblems), `And ${problems.length - mostProblems} more problems like these.`] };
}

/** What lies beyond is not even looked at: a schema costs time. */
function withinRoom(tools: readonly OfferedTool[], { first }: CatalogueRules): { readonly kept: readonly OfferedTool[]; readonly surplus: readonly string[] } {
  const ofServer = ({ name }: OfferedTool): boolean => name.includes('/');
  const isFirst = ({ name }: OfferedTool): boolean => first?.has(name) === true;
  const all = tools.filter(ofServer);
  const inOrder = [...all.filter(isFirst), ...all.filter((tool) => !isFirst(tool))];
  let room = mostCharacters;
  const fitting = inOrder.slice(0, mostServerTools).filter(({ characters = 0 }) => {
    if (characters > room) return false;
    room -= characters;
    return true;
  });
  const [beyond, heavy] = [Math.max(0, inOrder.length - mostServerTools), Math.min(inOrder.length, mostServerTools) - fitting.length];
  return {
    kept: [...tools.filter((tool) => !ofServer(tool)), ...fitting],
    surplus: [...leftOut(beyond, `a run may have ${mostServerTools} tools of servers`), ...leftOut(heavy, `a run's tools of servers may have ${mostCharacters} characters in all, descriptions and schemas`)],
  };
}

function leftOut(count: number, why: string): string[] {
  return count === 0 ? [] : [`${count} ${count === 1 ? 'tool is' : 'tools are'} left out: ${why}. Let the agent's patterns choose fewer.`];
}

/** This thread has other runs to keep alive. */
function schemaProblem(tool: OfferedTool, schemas: SchemaStore, late: () => boolean): string | null {
  const hash = definitionHash(tool);
  if (!schemas.knows(hash) && late()) return 'reading the schemas before it took too long';
  const schema = schemas.compiled(hash, tool.input_schema);
  return schema.type === 'unusable' ? schema.problem : null;
}

/** How a part of the host is carried out is nobody else's to say. */
function policyOf(tool: OfferedTool, { policies }: CatalogueRules): ToolPolicySource {
  return tool.builtin === undefined ? policyFor(policies, tool.name) : {};
}

/** Unknown means careful: alone, and never repeated blindly. */
function definition(tool: OfferedTool, wire_name: string, rules: CatalogueRules): ToolDefinition {
  const policy = policyOf(tool, rules);
  return {
    name: tool.name, wire_name, description: tool.description, input_schema: tool.input_schema as ToolDefinition['input_schema'],
    effect: policy.effect ?? tool.effect ?? 'once',
    parallel: policy.parallel ?? tool.parallel ?? 'serial',
    timeout_ms: policy.timeout_ms ?? tool.timeout_ms ?? rules.defaultTimeoutMs,
    ...(policy.path_args === undefined ? {} : { path_args: policy.path_args }),
    ...(policy.max_total_ms === undefined ? {} : { max_total_ms: policy.max_total_ms }),
    ...(policy.on_unknown === 'ask' ? { on_unknown: 'ask' } : {}),
    ...approvalOf(tool, policy),
    ...(policy.polling === true ? { polling: true } : {}),
    ...(tool.builtin === undefined ? {} : { builtin: tool.builtin }),
    hash: definitionHash(tool),
  };
}

/** A pattern that fits nothing is most likely a typing error, unless its server could not be asked. */
function unmatched(offers: readonly Offer[], patterns: readonly string[]): string[] {
  const missing = offers.flatMap((offer) => offer.missing);
  const names = offers.flatMap((offer) => offer.tools.map((tool) => tool.name));
  return patterns.filter((pattern) => !names.some((name) => matches(pattern, name)) && !missing.some((beginning) => mayMatchBeginning(pattern, beginning)))
    .map((pattern) => `No tool is offered that fits "${pattern}".`);
}
