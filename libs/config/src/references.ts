/**
 * Names that must stand for something. Read from the file as it was written, not as zod accepted it: otherwise a typing
 * error elsewhere would hide a dangling reference until the next try.
 */
import { builtinTools } from '@treadle/core';
import type { ConfigProblem } from './problem.ts';
import { hostTools } from './schema/names.ts';

type Entries = readonly (readonly [string, Record<string, unknown>])[];

export function danglingReferences(raw: unknown): ConfigProblem[] {
  const config = isObject(raw) ? raw : {};
  const models = namesOf(config.models);
  const chains = namesOf(config.chains);
  return [...agentReferences(entriesOf(config.agents), chains), ...subagentReferences(entriesOf(config.agents), namesOf(config.agents)), ...chainReferences(entriesOf(config.chains), models), ...twice(config.functions, namesOf(config.http_tools)), ...ofHost(namesOf(config.http_tools)), ...notAsked(entriesOf(config.tools))];
}

function agentReferences(agents: Entries, chains: readonly string[]): ConfigProblem[] {
  return agents.flatMap(([name, agent]) => {
    const chain = agent.chain ?? 'default';
    if (typeof chain !== 'string' || chains.includes(chain)) return [];
    return [{ path: `agents.${name}.chain`, problem: `no chain is named "${chain}"${known(chains)}` }];
  });
}

function subagentReferences(agents: Entries, names: readonly string[]): ConfigProblem[] {
  return agents.flatMap(([name, agent]) => (Array.isArray(agent.subagents) ? agent.subagents : []).flatMap((each: unknown, index, all): ConfigProblem[] => {
    const path = `agents.${name}.subagents.${index}`;
    if (typeof each !== 'string') return [];
    if (!names.includes(each)) return [{ path, problem: `no agent is named "${each}"${known(names)}` }];
    return all.indexOf(each) === index ? [] : [{ path, problem: `"${each}" stands here already` }];
  }));
}

function chainReferences(chains: Entries, models: readonly string[]): ConfigProblem[] {
  return [...chainModels(chains, models), ...canaryModels(chains, models)];
}

function canaryModels(chains: Entries, models: readonly string[]): ConfigProblem[] {
  return chains.flatMap(([name, chain]): ConfigProblem[] => {
    const model = isObject(chain.canary) ? chain.canary.model : undefined;
    const path = `chains.${name}.canary.model`;
    if (typeof model !== 'string') return [];
    if (!models.includes(model)) return [{ path, problem: `no model is named "${model}"${known(models)}` }];
    return Array.isArray(chain.models) && chain.models.includes(model) ? [{ path, problem: `"${model}" stands in this chain already; a canary is added to it` }] : [];
  });
}

function chainModels(chains: Entries, models: readonly string[]): ConfigProblem[] {
  return chains.flatMap(([name, chain]) => (Array.isArray(chain.models) ? chain.models : []).flatMap((model: unknown, index, all): ConfigProblem[] => {
    const path = `chains.${name}.models.${index}`;
    if (typeof model !== 'string') return [];
    if (!models.includes(model)) return [{ path, problem: `no model is named "${model}"${known(models)}` }];
    return all.indexOf(model) === index ? [] : [{ path, problem: `"${model}" stands in this chain already` }];
  }));
}

/** A tool without a server is known by its name alone. */
function ofHost(names: readonly string[]): ConfigProblem[] {
  return names.filter((name) => hostTools.includes(name)).map((name) => ({ path: `http_tools.${name}`, problem: 'this name belongs to a tool of the host' }));
}

/** A call that the run itself carries out: to ask a person whether a person may be asked, or a sub-agent started, is not offered. */
function notAsked(tools: Entries): ConfigProblem[] {
  return tools.filter(([name, { approval }]) => (builtinTools as readonly string[]).includes(name) && approval !== undefined && approval !== 'never')
    .map(([name]) => ({ path: `tools.${name}.approval`, problem: `${name} needs none: say it of the tools that are used behind it` }));
}

function twice(functions: unknown, httpTools: readonly string[]): ConfigProblem[] {
  if (!Array.isArray(functions)) return [];
  const names = functions.map((each: unknown) => (isObject(each) ? each.name : undefined));
  return names.flatMap((name, index) => {
    const path = `functions.${index}`;
    if (typeof name !== 'string') return [];
    if (hostTools.includes(name)) return [{ path, problem: 'this name belongs to a tool of the host' }];
    return names.indexOf(name) < index || httpTools.includes(name) ? [{ path, problem: `a tool named "${name}" is defined already` }] : [];
  });
}

function known(names: readonly string[]): string {
  return names.length === 0 ? '; none is defined' : `; defined: ${names.slice(0, 10).join(', ')}`;
}

function namesOf(value: unknown): string[] {
  return isObject(value) ? Object.keys(value) : [];
}

function entriesOf(value: unknown): Entries {
  return isObject(value) ? Object.entries(value).filter((entry): entry is [string, Record<string, unknown>] => isObject(entry[1])) : [];
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
