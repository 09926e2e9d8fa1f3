import { agentSpecOf, agentVersionOf, checkConfig, type LoadedConfig } from '@treadle/config';
import { initialState, type AgentSpec, type RunState } from '@treadle/core';
import type { SeenWorker } from '@treadle/engine';
import { expect, test } from 'vitest';
import { createElsewhere } from './elsewhere.ts';

const model = { provider: 'ollama', model: 'x', base_url: 'http://127.0.0.1:1', context_window: 1000, max_output_tokens: 100 };

function loaded(servers: readonly string[], instructions = 'x'): LoadedConfig {
  const outcome = checkConfig({
    models: { small: model }, chains: { default: { models: ['small'] } }, mcp_servers: Object.fromEntries(servers.map((name) => [name, { command: 'x' }])),
    agents: { tester: { instructions, chain: 'default', tools: servers.map((name) => `${name}/*`) } },
  }, {});
  if (outcome.type === 'invalid') throw new Error(JSON.stringify(outcome));
  return outcome.config;
}

const specOfRelease = (config: LoadedConfig): AgentSpec => agentSpecOf(config, 'tester')!;
const runOf = (config: LoadedConfig): RunState => ({ ...initialState, spec: specOfRelease(config), agent_version: agentVersionOf(specOfRelease(config)) });
const worker = (name: string, config: LoadedConfig, over: Partial<SeenWorker> = {}): SeenWorker => ({
  name, version: '1', agent_versions: [agentVersionOf(specOfRelease(config))], state: 'running', concurrency: 1, turns_in_flight: 0, taken_per_s: [], started_at_ms: 0, last_seen_ms: 100_000, ...over,
});
const [old, next, words] = [loaded(['files']), loaded(['web']), loaded(['web'], 'other words')];

function here() {
  let nowMs = 0;
  return { ...createElsewhere(next, { name: 'me', waitMs: 1000, monotonicMs: () => nowMs }), pass: (ms: number) => { nowMs += ms; } };
}

test('a run of this release, and one that only has other words, is done here', () => {
  const me = here();
  expect([me.of(runOf(next)), me.of(runOf(words))]).toEqual([null, null]);
});

test('a run that needs what is not here is left to others as long as one of them has it', () => {
  const me = here();
  me.heard([worker('me', next), worker('other', old)]);
  me.pass(1_000_000);
  expect(me.of(runOf(old))).toEqual(['tool "files/*"']);
});

test.each<[string, SeenWorker[]]>([
  ['nobody is there', []],
  ['the other one is about to go', [worker('other', old, { state: 'draining' })]],
  ['the other one has been silent', [worker('me', next), worker('other', old, { last_seen_ms: 80_000 })]],
  ['the other one says nothing of agents', [(({ agent_versions: _, ...rest }) => rest)(worker('other', old))]],
])('where %s, one that has it is waited for, and no longer than that', (_, workers) => {
  const me = here();
  me.heard(workers);
  expect(me.of(runOf(old))).not.toBeNull();
  me.pass(999);
  expect(me.of(runOf(old))).not.toBeNull();
  me.pass(1);
  expect(me.of(runOf(old))).toBeNull();
  // It comes after all.
  me.heard([worker('other', old)]);
  expect(me.of(runOf(old))).not.toBeNull();
  me.heard([]);
  expect(me.of(runOf(old))).not.toBeNull();
});
