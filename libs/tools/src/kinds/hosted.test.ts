/** The host's own tools: who is offered them, how they are described, and that nobody else's word counts for them. */
import type { AgentSpec, ToolDefinition } from '@treadle/core';
import { afterAll, describe, expect, test } from 'vitest';
import { createToolRunner } from '../tool-runner.ts';

const tools = createToolRunner({ functions: [], mcpServers: {}, policies: { '*': { effect: 'once', parallel: 'serial', timeout_ms: 5, on_unknown: 'ask', polling: true } } });
afterAll(() => tools.close());

const spec = (patterns: string[], subagents?: AgentSpec['subagents']): AgentSpec => ({ name: 'a', tools: patterns, ...(subagents === undefined ? {} : { subagents }) }) as unknown as AgentSpec;
const helpers = [{ name: 'reader', description: 'Reads.' }, { name: 'writer', description: 'Writes.' }];
const offered = async (patterns: string[], subagents?: AgentSpec['subagents']): Promise<readonly ToolDefinition[]> => (await tools.catalogue(spec(patterns, subagents))).tools;

describe('spawn_agent', () => {
  test('is offered to an agent that names it and has sub-agents; a pattern does not mean it', async () => {
    expect((await offered(['spawn_agent'], helpers)).map((tool) => tool.name)).toEqual(['spawn_agent']);
    expect(await offered(['*'], helpers)).toEqual([]);
    expect(await offered(['*', 'ask_*'], helpers)).toEqual([]);
    expect(await tools.catalogue(spec(['spawn_agent']))).toEqual({ tools: [], problems: ['No tool is offered that fits "spawn_agent".'] });
  });

  test('lists the agents, and the configuration of tools changes nothing about it', async () => {
    const [tool] = await offered(['spawn_agent'], helpers);
    expect(tool).toMatchObject({ builtin: 'spawn_agent', wire_name: 'spawn_agent', effect: 'idempotent', parallel: 'parallel' });
    expect(tool).not.toHaveProperty('on_unknown');
    expect(tool).not.toHaveProperty('polling');
    expect(tool!.input_schema['properties']).toMatchObject({ agent: { enum: ['reader', 'writer'], description: 'Which agent:\n- reader: Reads.\n- writer: Writes.' } });
  });

  test.each([
    [{ agent: 'reader', input: 'x' }, true], [{ agent: 'reader', input: 'x', wait: false }, true], [{ agent: 'nobody', input: 'x' }, false], [{ agent: 'reader' }, false],
    [{ agent: 'reader', input: '' }, false], [{ agent: 'reader', input: 'x', wait: 'no' }, false], [{ agent: 'reader', input: 'x', more: 1 }, false],
  ])('takes %j: %s', async (input, fits) => {
    const [tool] = await offered(['spawn_agent'], helpers);
    expect(tools.check(tool!, input) === null).toBe(fits);
  });
});

test('ask_user is offered to whoever names it, with a question', async () => {
  const [tool] = await offered(['ask_user', '*']);
  expect(tool).toMatchObject({ name: 'ask_user', builtin: 'ask_user', effect: 'read' });
  expect([tools.check(tool!, { question: 'Which?' }), tools.check(tool!, {}) === null, tools.check(tool!, { question: '' }) === null]).toEqual([null, false, false]);
  expect(await offered(['*'])).toEqual([]);
});

test('a function of the same name is the one that is meant, and that is said', async () => {
  const own = createToolRunner({ mcpServers: {}, policies: {}, functions: [{ name: 'ask_user', description: 'Own.', input_schema: { type: 'object' }, effect: 'read', parallel: 'parallel', timeout_ms: null, run: () => 'x' }] });
  const { tools: found, problems } = await own.catalogue(spec(['ask_user']));
  expect(found.map((tool) => [tool.description, tool.builtin])).toEqual([['Own.', undefined]]);
  expect(problems).toEqual(['Tool ask_user is left out: its name is taken already.']);
  await own.close();
});

test('neither is carried out by the tool runner', async () => {
  const [tool] = await offered(['ask_user']);
  const result = await tools.run({ run_id: 'r', tool: tool!, input: { question: 'x' }, tool_use_id: 't', idempotency_key: 'k', epoch: 1, signal: new AbortController().signal });
  expect(result).toMatchObject({ is_error: true, settled: true });
});
