/**
 * What of a run is not here. A run carries the agent that it began with; what stays behind is found by name in the configuration of the
 * worker: connections of models, servers and tools, functions of hooks and validators, sub-agents. While workers with two configurations
 * are about, as in a rolling deploy, one of them may lack some of it.
 */
import type { AgentSpec, ToolDefinition } from '@treadle/core';
import { hookFunctions, validatorFunctions } from './connections.ts';
import type { LoadedConfig } from './load.ts';
import { hostTools } from './schema/names.ts';

/** In words, such as `tool "files/read"`; empty where all is here. `tools`: the run's pinned definitions, null before its first claim. */
export function lackingOf(config: LoadedConfig, spec: AgentSpec, tools: readonly Pick<ToolDefinition, 'name'>[] | null): string[] {
  const [hooks, validators] = [hookFunctions(config), validatorFunctions(config)];
  const functions = [
    ...spec.stop_hooks.filter(({ type, name }) => type === 'function' && !Object.hasOwn(hooks, name)).map(({ name }) => `stop hook "${name}"`),
    ...spec.validators.filter(({ type, name }) => type === 'function' && !Object.hasOwn(validators, name)).map(({ name }) => `validator "${name}"`),
  ];
  // Patterns say less than names: one that may stand for several things is no proof that anything is missing.
  const asked = tools?.map(({ name }) => name) ?? spec.tools.filter((pattern) => !/\*.*\/|^[^/]*\*[^/]*$/.test(pattern));
  return [
    ...spec.chain.models.filter(({ name }) => !Object.hasOwn(config.models, name)).map(({ name }) => `model "${name}"`),
    ...functions,
    ...asked.filter((name) => !hasTool(config, name)).map((name) => `tool "${name}"`),
    ...(spec.subagents ?? []).filter(({ name }) => !Object.hasOwn(config.agents, name)).map(({ name }) => `sub-agent "${name}"`),
  ];
}

function hasTool(config: LoadedConfig, name: string): boolean {
  const slash = name.indexOf('/');
  if (slash !== -1) return Object.hasOwn(config.mcp_servers, name.slice(0, slash));
  return hostTools.includes(name) || Object.hasOwn(config.http_tools, name) || config.functions.some((tool) => tool.name === name);
}
