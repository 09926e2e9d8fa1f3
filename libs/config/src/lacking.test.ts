import { describe, expect, test } from 'vitest';
import { agentSpecOf } from './agent-spec.ts';
import { lackingOf } from './lacking.ts';
import { checkConfig, type LoadedConfig } from './load.ts';

const model = { provider: 'ollama', model: 'x', base_url: 'http://127.0.0.1:1', context_window: 1000, max_output_tokens: 100 };
const hook = { type: 'function', name: 'tidy', decide: () => ({ decision: 'stop' }) };
const whole = {
  models: { small: model, big: model }, chains: { default: { models: ['small', 'big'] } },
  mcp_servers: { files: { command: 'x' } }, http_tools: { lookup: { method: 'GET', url: 'http://127.0.0.1/{id}', input_schema: { type: 'object', properties: { id: { type: 'string' } }, required: ['id'] } } },
  agents: { helper: { instructions: 'x', chain: 'default' }, tester: { instructions: 'x', chain: 'default', tools: ['files/*', 'lookup', 'ask_user', 'spawn_agent', 'http_*'], stop_hooks: [hook], subagents: ['helper'] } },
};

function loaded(over: object): LoadedConfig {
  const outcome = checkConfig({ ...whole, ...over }, {});
  if (outcome.type === 'invalid') throw new Error(JSON.stringify(outcome));
  return outcome.config;
}

const spec = agentSpecOf(loaded({}), 'tester')!;
const lone = (fields: object = {}) => ({ agents: { tester: { instructions: 'y', chain: 'default', ...fields } } });

describe('what of a run is not here', () => {
  test.each([
    ['nothing where all is configured', {}, []],
    ['nothing where only words differ', { agents: { ...whole.agents, tester: { ...whole.agents.tester, instructions: 'Others.' } } }, []],
    ['a model', { models: { small: model }, chains: { default: { models: ['small'] } } }, ['model "big"']],
    ['a server', { mcp_servers: {}, agents: { ...whole.agents, tester: { ...whole.agents.tester, tools: [] , subagents: [] } } }, ['tool "files/*"']],
    ['a tool, a hook and a sub-agent', { http_tools: {}, ...lone() }, ['stop hook "tidy"', 'tool "lookup"', 'sub-agent "helper"']],
  ])('%s', (_, over, expected) => {
    expect(lackingOf(loaded(over), spec, null)).toEqual(expected);
  });

  test('of a run whose tools are pinned these count, not the patterns', () => {
    expect(lackingOf(loaded({ mcp_servers: {}, agents: { ...whole.agents, tester: { ...whole.agents.tester, tools: [], subagents: [] } } }), spec, [{ name: 'files/read' }, { name: 'lookup' }, { name: 'gone' }])).toEqual(['tool "files/read"', 'tool "gone"']);
  });
});
