/** What of a batch runs together: as the ledger of the tools saw it, which knows nothing of the plan. */
import { reply, text } from '@treadle/testkit';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ofType, play } from './general-checks.ts';
import { startCases, type Cases, type LiveRun } from './stage.ts';

let cases: Cases;
beforeAll(async () => {
  cases = await startCases({
    tools: { 't/keyed_note': { effect: 'idempotent', parallel: 'parallel' }, 't/note': { parallel: 'path', path_args: ['v'] } },
  });
  await cases.worker();
});
afterAll(async () => { await cases.stop(); });

const call = (index: number, name: string, args: object) => ({ id: `c${index}`, name: `t__${name}`, args });

/** Beginnings and ends in the order in which the tools wrote them: `+v`, `-v`. */
function course(live: LiveRun): string[] {
  return cases.ledger().filter((line) => line.run_id === live.id && line.phase !== undefined).map((line) => `${line.phase === 'start' ? '+' : '-'}${String(line.input['v'])}`);
}

describe.concurrent('of one reply', () => {
  test('eight calls that only read are all begun before the first has ended, and answered in their order', async () => {
    const calls = Array.from({ length: 8 }, (_, index) => call(index, 'keyed_note', { v: `r${index}`, ms: 1000 - 100 * index }));
    const { run, live, events } = await play(cases, 'eight readers', [reply({ calls }), text('ok')]);
    expect(run.status).toBe('completed');
    expect(course(live).slice(0, 8).every((line) => line.startsWith('+'))).toBe(true);
    expect(ofType(events, 'tool_use').map((event) => event.execution)).toEqual(Array(8).fill('parallel'));
    const sent = live.requests().at(-1)!.body!['messages'] as { role: string; content: string }[];
    expect(sent.filter(({ role }) => role === 'tool').map(({ content }) => content)).toEqual(calls.map(({ args }) => `noted ${(args as unknown as { v: string }).v}`));
  });

  test('two that write one path never overlap, two of different paths do', async () => {
    const paths = ['/a', '/b', '/a', '/a/x', '/c'];
    const { run, live } = await play(cases, 'writers', [reply({ calls: paths.map((v, index) => call(index, 'note', { v, ms: 300 })) }), text('ok')]);
    expect(run.status).toBe('completed');
    // Neighbours of different paths begin together; whoever comes behind an overlap waits for the whole group before.
    const seen = course(live);
    expect(seen.slice(0, 2).sort()).toEqual(['+/a', '+/b']);
    expect(seen.slice(2, 4).sort()).toEqual(['-/a', '-/b']);
    expect(seen.slice(4, 6)).toEqual(['+/a', '-/a']);
    expect(seen.slice(6, 8).sort()).toEqual(['+/a/x', '+/c']);
    expect(seen).toHaveLength(10);
  });
});
