/** What a run is pinned to when it is created: made here from the configuration, without secrets and addresses. */
import { createHash } from 'node:crypto';
import { canonicalJson, limitNames, mostOf, type AgentLimits, type AgentSpec, type ChainSpec, type LimitName, type LimitRange, type Limits, type ModelSpec } from '@treadle/core';
import type { CanaryDefinition } from '@treadle/engine';
import type { LoadedConfig } from './load.ts';
import { nameOf } from './schema/answers.ts';
import type { AgentConfig } from './schema/config.ts';
import { unsetLimit, type LimitsConfig } from './schema/limits.ts';

/** The spec of one agent, or undefined where no agent has that name. */
export function agentSpecOf(config: LoadedConfig, agentName: string): AgentSpec | undefined {
  const agent = Object.hasOwn(config.agents, agentName) ? config.agents[agentName] : undefined;
  if (agent === undefined) return undefined;
  return {
    name: agentName, soul: agent.soul ?? null, instructions: agent.instructions, chain: chainSpecOf(config, agent.chain) ?? { name: agent.chain, models: [] },
    tools: agent.tools, limits: limitsOf(agent), protocol: agent.protocol,
    validators: agent.validators.map(validatorSpec), stop_hooks: agent.stop_hooks.map(hookSpec), ...subagentsOf(config, agent),
  };
}

/** Nothing at all where there are none: what an agent is made by is hashed. */
function subagentsOf(config: LoadedConfig, { subagents }: AgentConfig): Pick<AgentSpec, 'subagents'> {
  if (subagents.length === 0) return {};
  return { subagents: subagents.map((name) => ({ name, description: descriptionOf(config.agents[name]) })) };
}

/** What it is, in its own words where it has none for others: the first line of them. */
function descriptionOf(agent: AgentConfig | undefined): string {
  const own = agent?.description ?? agent?.soul ?? agent?.instructions ?? '';
  return agent?.description ?? (own.split('\n')[0] ?? '').slice(0, 300).toWellFormed();
}

/** A chain with its models, or undefined where none has that name. */
export function chainSpecOf(config: LoadedConfig, name: string): ChainSpec | undefined {
  const chain = Object.hasOwn(config.chains, name) ? config.chains[name] : undefined;
  if (chain === undefined) return undefined;
  const models = modelsOf(chain).map((each) => modelSpec(config, each));
  // As it is before any run is drawn: the arm of a run is no part of what its agent is.
  return { name, models, ...(chain.canary == null ? {} : { canary: { model: chain.canary.model, arm: 'control', stage: 0 } }) };
}

/** A model on trial stands last. */
function modelsOf(chain: LoadedConfig['chains'][string]): string[] {
  return [...chain.models, ...(chain.canary == null ? [] : [chain.canary.model])];
}

/** The trials of new models, by chain. */
export function canaryDefinitions(config: LoadedConfig): Readonly<Record<string, CanaryDefinition>> {
  return Object.fromEntries(Object.entries(config.chains).flatMap(([name, { canary }]) => canary == null ? [] : [[name, canary]]));
}

/** Names one spec for ever: the hash of its canonical JSON, so that the order of keys in a file does not matter. */
export function agentVersionOf(spec: AgentSpec): `sha256:${string}` {
  return `sha256:${createHash('sha256').update(canonicalJson(spec)).digest('hex')}`;
}

/** What is most likely a mistake; for the start and for `doctor`. */
export function configWarnings(config: LoadedConfig): string[] {
  return Object.entries(config.agents).flatMap(([name, agent]) => [...idleSubagents(name, agent), ...lackingModels(config, name, agent)]);
}

/** Where a model of an agent's chain lacks what the agent needs. */
function lackingModels(config: LoadedConfig, name: string, agent: AgentConfig): string[] {
  if (agent.tools.length === 0) return [];
  const chain = config.chains[agent.chain];
  const lacking = (chain === undefined ? [] : modelsOf(chain)).filter((model) => config.models[model]?.supports_tools === false);
  return lacking.map((model) => `agent "${name}" has tools, but model "${model}" of its chain "${agent.chain}" does not support them`);
}

function idleSubagents(name: string, { tools, subagents }: AgentConfig): string[] {
  if (tools.includes('spawn_agent') === subagents.length > 0) return [];
  return [subagents.length > 0 ? `agent "${name}" has subagents, but "spawn_agent" is not among its tools` : `agent "${name}" has the tool "spawn_agent", but no subagents`];
}

function modelSpec(config: LoadedConfig, name: string): ModelSpec {
  const model = config.models[name];
  if (model === undefined) throw new Error(`checked configuration lacks model "${name}"`);
  const { provider, model: own, context_window, max_output_tokens, supports_tools, supports_images } = model;
  return { name, provider, model: own, context_window, max_output_tokens, supports_tools, supports_images };
}

/** Functions stay behind: the worker finds them by name. */
function validatorSpec(validator: AgentConfig['validators'][number], index: number): AgentSpec['validators'][number] {
  const { mode } = validator;
  const name = nameOf(validator, index);
  switch (validator.type) {
    // A copy by JSON: it is hashed, stored and sent, so what JSON cannot hold must not be in it.
    case 'json_schema': return { name, mode, type: 'json_schema', schema: JSON.parse(JSON.stringify(validator.schema)) as Record<string, unknown> };
    case 'regex': {
      const { pattern, feedback = `The answer must match the regular expression ${pattern}` } = validator;
      return { name, mode, type: 'regex', pattern, feedback };
    }
    case 'function': return { name, mode, type: 'function' };
  }
}

function hookSpec(hook: AgentConfig['stop_hooks'][number], index: number): AgentSpec['stop_hooks'][number] {
  const name = nameOf(hook, index);
  if (hook.type === 'function') return { name, type: 'function' };
  const { pattern, decision, prompt } = hook;
  return { name, type: 'regex', pattern, decision, prompt };
}

function limitsOf(agent: AgentConfig): AgentLimits {
  return Object.fromEntries(limitNames.map((name) => [name, rangeOf(name, agent.limits[name])])) as unknown as AgentLimits;
}

/**
 * A value is both; a maximum alone lowers the default to it where needed; nothing at all means the default, not to be raised.
 * Null is no limit, and so more than any.
 */
function rangeOf(name: LimitName, given: LimitsConfig[LimitName]): LimitRange<Limits[LimitName], number | null> {
  if (typeof given === 'number' || given === null) return { default: given, max: given };
  const unset = unsetLimit(name) as number | null;
  const { first, default: usual = lower(unset, given?.max) } = given ?? {};
  const value = typeof first === 'number' && usual !== null ? { first, default: usual } : usual;
  return { default: value, max: given?.max === undefined ? value === null ? null : mostOf(value) : given.max };
}

function lower(value: number | null, max: number | null | undefined): number | null {
  if (max === undefined || max === null) return value;
  return value === null ? max : Math.min(value, max);
}
