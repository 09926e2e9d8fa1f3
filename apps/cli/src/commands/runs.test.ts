import { describe, expect, test } from 'vitest';
import { answeringApi } from '../fixtures/answering-api.ts';
import { asCommandFailure } from '../server.ts';
import type { CommandFailed } from '../setup.ts';
import { runsCommand } from './runs.ts';
/** Accepts every command, unless a test says otherwise. */
const api = answeringApi({ status: 202, body: { id: 'run_1', status: 'running' } });

describe('runs', () => {
  test.each([
    [['cancel', 'run_1'], 'POST', '/v1/runs/run_1/cancel', undefined, 'run_1 will be cancelled\n'],
    [['pause', 'run_1'], 'POST', '/v1/runs/run_1/pause', undefined, 'run_1 will pause at its next safe point\n'],
    [['resume', 'run_1'], 'POST', '/v1/runs/run_1/resume', undefined, 'run_1 goes on\n'],
    [['resume', 'run_1', '--input', 'In Paris.'], 'POST', '/v1/runs/run_1/resume', { input: 'In Paris.' }, 'run_1 goes on\n'],
    [['rm', 'run_1'], 'DELETE', '/v1/runs/run_1', undefined, 'run_1 is deleted\n'],
    [['steer', 'run_1', 'be', 'quick'], 'POST', '/v1/runs/run_1/steer', { text: 'be quick' }, 'run_1 will be told\n'],
    [['approve', 'run_1', 'c1'], 'POST', '/v1/runs/run_1/approvals/c1', { decision: 'approve' }, 'run_1 has the word, and goes on when it has all\n'],
    [['approve', 'run_1', 'c1', '--input', '{"to":"staging"}', '--reason', 'try it'], 'POST', '/v1/runs/run_1/approvals/c1', { decision: 'approve', input: { to: 'staging' }, reason: 'try it' }, 'run_1 has the word, and goes on when it has all\n'],
    [['deny', 'run_1', 'c1', '--reason', 'not today'], 'POST', '/v1/runs/run_1/approvals/c1', { decision: 'deny', reason: 'not today' }, 'run_1 has the word, and goes on when it has all\n'],
  ])('%j asks the API once and says what was accepted', async (args, method, url, body, line) => {
    expect(await runsCommand(args)).toBe(0);
    expect(api.asked).toEqual([{ method, url, body }]);
    expect(api.printed).toBe(line);
  });

  test.each([[['pause', 'run_1', '--json']], [['resume', 'run_1', '--json']], [['steer', 'run_1', 'x', '--json']], [['cancel', 'run_1', '--json']], [['approve', 'run_1', 'c1', '--json']], [['deny', 'run_1', 'c1', '--json']]])('%j prints the run', async (args) => {
    expect(await runsCommand(args)).toBe(0);
    expect(JSON.parse(api.printed)).toEqual({ id: 'run_1', status: 'running' });
  });

  test.each([[['steer', 'run_1']], [['steer', 'run_1', ' ']], [['pause']], [['cancel']], [['cancel', '']], [['cancel', '', '--all']], [['fly', 'run_1']], [['constructor', 'run_1']], [['approve', 'run_1']], [['approve', 'run_1', 'c1', 'c2']],
    [['approve', 'run_1', 'c1', '--input', '[1]']], [['approve', 'run_1', 'c1', '--input', '{']], [['deny', 'run_1']], [['deny', 'run_1', 'c1', '--input', '{}']]])('%j is bad usage, and nothing is asked', async (args) => {
    await expect(runsCommand(args)).rejects.toMatchObject({ exitCode: 2 });
    expect(api.asked).toEqual([]);
  });

  test('cancel by a filter goes on until there are no more', async () => {
    const pages = [{ cancelled: 2, run_ids: ['run_1', 'run_2'], next_cursor: 'c1' }, { cancelled: 1, run_ids: ['run_3'], next_cursor: null }];
    for (const [args, filter] of [[['--agent', 'a', '--status', 'queued', '--tag', 't'], { agent: 'a', status: 'queued', tag: 't' }], [['--all'], { all: true }]] as const) {
      api.asked = [];
      api.printed = '';
      const left = [...pages];
      api.answer = { status: 202, get body() { return left.shift(); } };
      expect(await runsCommand(['cancel', ...args])).toBe(0);
      expect(api.asked).toEqual([{ method: 'POST', url: '/v1/runs/cancel', body: filter }, { method: 'POST', url: '/v1/runs/cancel', body: { ...filter, cursor: 'c1' } }]);
      expect(api.printed).toBe('3 runs will be cancelled\n');
    }
    const left = [...pages];
    api.answer = { status: 202, get body() { return left.shift(); } };
    api.printed = '';
    await runsCommand(['cancel', '--all', '--json']);
    expect(JSON.parse(api.printed)).toEqual({ cancelled: 3, run_ids: ['run_1', 'run_2', 'run_3'] });
  });

  test('ls goes on at a cursor, and prints the next one', async () => {
    const run = { id: 'run_1', status: 'completed', stop_reason: 'answered', agent: 'assistant', created_at: '2030-01-01T00:00:00Z' };
    api.answer = { status: 200, body: { data: [run], next_cursor: 'abc' } };
    expect(await runsCommand(['ls', '--cursor', 'xyz', '--limit', '1'])).toBe(0);
    expect(api.asked[0]!.url).toBe('/v1/runs?limit=1&cursor=xyz');
    expect(api.printed).toMatch(/^run_1 {2}completed .*\nmore: --cursor abc\n$/);
    api.printed = '';
    api.answer = { status: 200, body: { data: [], next_cursor: null } };
    expect(await runsCommand(['ls'])).toBe(0);
    expect(api.printed).toBe('');
  });

  test('show says which call nobody knows the outcome of, and how to say it', async () => {
    const run = { id: 'run_1', agent: 'clerk', status: 'paused', stop_reason: null, error: null, answer: null, ended_at: null, tool_calls: 1, usage: { input_tokens: 0, output_tokens: 0 }, turn_number: 1, pending: [{ kind: 'outcome', tool_use_id: 't1.0', tool_name: 'bank/pay', tool_input: { eur: 5 } }] };
    api.answer = { status: 200, body: { ...run, run, tool_use_id: null, truncated: false, children: [] } };
    expect(await runsCommand(['show', 'run_1'])).toBe(0);
    expect(api.printed).toContain('may or may not have happened: bank/pay {"eur":5}\n  treadle runs resolve run_1 t1.0 happened (or did_not_happen)\n');
  });

  test('show says which call of a sub-agent waits for a word, and of which run', async () => {
    const run = { id: 'run_1', agent: 'lead', status: 'paused', stop_reason: null, error: null, answer: null, ended_at: null, tool_calls: 1, usage: { input_tokens: 0, output_tokens: 0 }, turn_number: 1, pending: [{ kind: 'child_run', tool_use_id: 's1', tool_name: 'spawn_agent', tool_input: {} }] };
    const child = { ...run, id: 'run_2', agent: 'helper', pending: [{ kind: 'approval', tool_use_id: 'c1', tool_name: 'ops/deploy', tool_input: { to: 'x' } }] };
    api.answer = { status: 200, body: { ...run, run, tool_use_id: null, truncated: false, children: [{ run: child, tool_use_id: 's1', children: [] }] } };
    expect(await runsCommand(['show', 'run_1'])).toBe(0);
    expect(api.printed).toMatch(/\n {2}started helper: run_2 .*\n {4}waits for approval: ops\/deploy \{"to":"x"\}\n {6}treadle runs approve run_2 c1 \(or deny\)\n$/);
  });

  test('what the API refuses keeps its code and its problems', async () => {
    api.answer = { status: 409, body: { code: 'invalid_state', detail: 'The run has ended.', errors: [{ path: 'a', problem: 'b' }] } };
    const error: unknown = await runsCommand(['cancel', 'run_1']).catch((thrown: unknown) => asCommandFailure(thrown));
    expect(error).toMatchObject({ exitCode: 2, message: 'invalid_state: The run has ended.\n  a: b' });
    expect((error as CommandFailed).asJson()).toEqual({ code: 'invalid_state', message: 'The run has ended.', problems: [{ path: 'a', problem: 'b' }] });
  });
});
