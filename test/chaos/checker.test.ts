/** The checker bites: a history in which one thing is wrong is told by the invariant that it breaks, and a good one by none. */
import { describe, expect, test } from 'vitest';
import type { LedgerLine } from '@treadle/testkit';
import { problemsOf, type History, type RunHistory } from './checker.ts';

const line = (seq: number, type: string, more: object = {}): string => JSON.stringify({ type, seq, ts: 1, run_id: 'run_a', turn_number: 1, epoch: 1, ...more });
const log = [
  line(1, 'run_created', { epoch: 0 }), line(2, 'tool_use', { tool_use_id: 'a' }), line(3, 'tool_result', { tool_use_id: 'a' }),
  line(4, 'assistant_text', { turn_number: 2, is_final: true, epoch: 2 }), line(5, 'run_end', { turn_number: 2, epoch: 2 }),
];
const run: RunHistory = {
  id: 'run_a', status: 'completed', stop_reason: 'answered', usage: { input_tokens: 200, output_tokens: 20 }, log, archived: log,
  replay: { identical: true, differences: [] }, seen: [log, log.slice(0, 3), []],
};
const start: LedgerLine = { ts: 1, phase: 'start', tool: 'row', run_id: 'run_a', tool_use_id: 'a', idempotency_key: 'k', epoch: 1, input: {} };
const good: History = {
  runs: [run], ledger: [start, { ...start, phase: 'end' }, { ...start, tool: 'keyed', tool_use_id: 'b' }, { ...start, tool: 'keyed', tool_use_id: 'b', epoch: 2 }],
  keyedTools: ['keyed'], readTools: ['look'], refused: [], usagePerReply: { input: 100, output: 10 }, planned: ['P1', 'P2'], fired: ['P2', 'P1'],
};
const withRun = (over: Partial<RunHistory>): History => ({ ...good, runs: [{ ...run, ...over }] });

test('a good history has no problems', () => { expect(problemsOf(good)).toEqual([]); });

describe('a history is not good', () => {
  test.each<[string, string, History]>([
    ['I1', 'where a run goes on', withRun({ status: 'running' })],
    ['I2', 'where a call without a key starts twice', { ...good, ledger: [...good.ledger, start] }],
    ['I2', 'where a call with a key starts with another', { ...good, ledger: [...good.ledger, { ...start, tool: 'keyed', tool_use_id: 'b', idempotency_key: 'other' }] }],
    ['I3', 'where an event is missing', withRun({ log: log.toSpliced(1, 1) })],
    ['I3', 'where an event is doubled', withRun({ log: log.toSpliced(1, 0, log[1]!) })],
    ['I3', 'where something follows the end', withRun({ log: [...log, line(6, 'turn_end', { epoch: 2 })] })],
    ['I3', 'where there are two ends', withRun({ log: [...log, line(6, 'run_end', { epoch: 2 })] })],
    ['I4', 'where a reader saw what is not stored', withRun({ seen: [[...log, line(6, 'steer')]] })],
    ['I4', 'where a reader missed an event', withRun({ seen: [log.toSpliced(2, 1)] })],
    ['I4', 'where a reader saw an event twice', withRun({ seen: [log.toSpliced(2, 0, log[2]!)] })],
    ['I5', 'where the fold is not the state', withRun({ replay: { identical: false, differences: ['x'] } })],
    ['I5', 'where the archive lacks an event', withRun({ archived: log.slice(0, 4) })],
    ['I5', 'where the archive holds another event', withRun({ archived: log.with(1, line(2, 'tool_use', { tool_use_id: 'z' })) })],
    ['I6', 'where a call has no result', withRun({ log: log.with(2, line(3, 'turn_end')) })],
    ['I6', 'where a call has two results', withRun({ log: log.with(3, line(4, 'tool_result', { tool_use_id: 'a' })) })],
    ['I6', 'where the model server refused a request', { ...good, refused: ['request 3: two results'] }],
    ['I7', 'where an old epoch writes after a new one', withRun({ log: log.with(4, line(5, 'run_end', { epoch: 1 })) })],
    ['I7', 'where a call starts under an old epoch', { ...good, ledger: [{ ...start, tool_use_id: 'z', epoch: 4 }, ...good.ledger] }],
    ['I8', 'where usage was counted twice', withRun({ usage: { input_tokens: 300, output_tokens: 30 } })],
    ['I9', 'where no run was made', { ...good, runs: [] }],
    ['I9', 'where the runs failed', withRun({ status: 'failed', stop_reason: 'infrastructure' })],
    ['I9', 'where a planned fault never fired', { ...good, fired: ['P1', 'P1'] }],
  ])('%s: %s', (invariant, _, history) => {
    const problems = problemsOf(history);
    expect(problems.length).toBeGreaterThan(0);
    expect(problems.some((problem) => problem.includes(invariant))).toBe(true);
  });
});
