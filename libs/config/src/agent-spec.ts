/** What a run is pinned to when it is created: made here from the configuration, without secrets and addresses. */
import { createHash } from 'node:crypto';
import { canonicalJson, limitNames, type AgentLimits, type AgentSpec, type LimitName, type LimitRange, type ModelSpec } from '@treadle/core';
import type { LoadedConfig } from './load.ts';
import type { AgentConfig } from './schema/config.ts';
import { unsetLimit, type LimitsConfig } from './schema/limits.ts';

/** The spec of one agent, or undefined where no agent has that name. */
export function agentSpecOf(config: LoadedConfig, agentName: string): AgentSpec | undefined {
  const agent = Object.hasOwn(config.agents, agentName) ? config.agents[agentName] : undefined;
  if (agent === undefined) return undefined;
  const models = (config.chains[agent.chain]?.models ?? []).map((name) => modelSpec(config, name));
  return {
    name: agentName, soul: agent.soul ?? null, instructions: agent.instructions, chain: { name: agent.chain, models },
    tools: agent.tools, limits: limitsOf(agent),
  };
}

/** Names one spec for ever: the hash of its canonical JSON, so that the order of keys in a file does not matter. */
export function agentVersionOf(spec: AgentSpec): `sha256:${string}` {
  return `sha256:${createHash('sha256').update(canonicalJson(spec)).digest('hex')}`;
}

/** Where a model of an agent's chain lacks what the agent needs; for the start and for `doctor`. */
export function configWarnings(config: LoadedConfig): string[] {
  return Object.entries(config.agents).flatMap(([name, agent]) => {
    if (agent.tools.length === 0) return [];
    const lacking = (config.chains[agent.chain]?.models ?? []).filter((model) => config.models[model]?.supports_tools === false);
    return lacking.map((model) => `agent "${name}" has tools, but model "${model}" of its chain "${agent.chain}" does not support them`);
  });
}

function modelSpec(config: LoadedConfig, name: string): ModelSpec {
  const model = config.models[name];
  if (model === undefined) throw new Error(`checked configuration lacks model "${name}"`);
  const { provider, model: own, context_window, max_output_tokens, supports_tools, supports_images } = model;
  return { name, provider, model: own, context_window, max_output_tokens, supports_tools, supports_images };
}

function limitsOf(agent: AgentConfig): AgentLimits {
  return Object.fromEntries(limitNames.map((name) => [name, rangeOf(name, agent.limits[name])])) as Record<LimitName, LimitRange>;
}

/** A number is both; a maximum alone lowers the default to it where needed; nothing at all means the default, not to be raised. */
function rangeOf(name: LimitName, given: LimitsConfig[LimitName]): LimitRange {
  if (typeof given === 'number') return { default: given, max: given };
  const fallback = given?.max === undefined ? unsetLimit(name) : Math.min(unsetLimit(name), given.max);
  const value = given?.default ?? fallback;
  return { default: value, max: given?.max ?? value };
}
