import { noTotals, type CanaryDefinition, type CanaryReading, type CanaryRun } from '@treadle/engine';
import { describe, expect, test } from 'vitest';
import { atEqualAge } from './equal-age.ts';
import { judgeTrial, leastRuns } from './judge.ts';

const now_ms = 1_700_000_000_000;
const definition: CanaryDefinition = { model: 'next', stages: [0, 5, 25, 50, 100], min_runs: 50, bounds: { error_rate_delta: 0.02, latency_ratio: 1.5, cost_ratio: 2 } };

interface RunFields { readonly arm?: CanaryRun['arm']; readonly age_s?: number; readonly took_s?: number | null; readonly marks?: string; readonly active_s?: number; readonly cost_usd?: number }

function run({ arm = 'canary', age_s = 100, took_s = 1, marks = '', active_s = 1, cost_usd = 0.01 }: RunFields = {}): CanaryRun {
  const start_ms = now_ms - age_s * 1000;
  const has = (mark: string): boolean => marks.split(' ').includes(mark);
  return { arm, start_ms, ended: took_s === null ? null : {
    at_ms: start_ms + took_s * 1000, failed: has('failed'), erred: has('erred'), invalid: has('invalid'), tool_failed: has('tool_failed'), active_s, cost_usd } };
}

/** `hits` of `n` runs are marked. */
function many(n: number, fields: RunFields & { readonly hits?: number } = {}): CanaryRun[] {
  const { hits = 0, marks = '', ...rest } = fields;
  return Array.from({ length: n }, (_, index) => run({ ...rest, marks: index < hits ? marks : '', active_s: (rest.active_s ?? 1) * (0.9 + index % 5 * 0.05) }));
}

function reading(runs: readonly CanaryRun[], state: Partial<CanaryReading['state']> = {}, controlEnded = 0): CanaryReading {
  return {
    state: { chain: 'default', definition, stage: 5, status: 'active', since_ms: 0, version: 3, ...state }, now_ms, runs, decisions: [],
    totals: { canary: noTotals, control: { ...noTotals, ended: controlEnded } },
  };
}

const control = (n = 500, fields: RunFields & { readonly hits?: number } = { hits: 25, marks: 'failed' }) => many(n, { ...fields, arm: 'control' });

describe('equal age', () => {
  test('a run counts at an age when it has reached it, as it was then', () => {
    const runs = [
      run({ age_s: 5, took_s: 1, marks: 'failed' }), run({ age_s: 30, took_s: null }), run({ age_s: 30, took_s: 2, marks: 'failed' }),
      run({ age_s: 100, took_s: 50, marks: 'failed erred' }), run({ age_s: 100, took_s: 9 }),
    ];
    const [ten, minute, tenMinutes] = atEqualAge(runs, now_ms);
    expect(ten!.arms.canary).toMatchObject({ runs: 4, ended: 2, having: { failed: 1, erred: 0 } });
    expect(minute!.arms.canary).toMatchObject({ runs: 2, ended: 2, having: { failed: 1, erred: 1 } });
    expect(tenMinutes!.arms.canary).toMatchObject({ runs: 0, ended: 0 });
    expect(ten!.arms.control.runs).toBe(0);
  });

  test('a slow model whose failures alone have ended yet is not taken for a bad one', () => {
    // All have begun half a minute ago. One in twenty fails after a second, like the others' runs; the rest takes a minute.
    const slow = [...many(380, { age_s: 30, took_s: null }), ...many(20, { age_s: 30, hits: 20, marks: 'failed' })];
    expect(judgeTrial(reading([...slow, ...control()]))).toMatchObject({ decision: 'hold', reason: 'too_few_runs' });
    // What has ended has failed, all of it: without the runs that go on it is as bad as can be.
    const ended = slow.filter((each) => each.ended !== null);
    expect(judgeTrial(reading([...ended, ...control()]))).toMatchObject({ decision: 'rollback', reason: 'failures' });
  });
});

describe('rollback', () => {
  test.each([['failed', 'failures'], ['erred', 'model_errors'], ['invalid', 'validation_failures'], ['tool_failed', 'tool_errors']])('when far more runs are %s: %s', (marks, reason) => {
    const verdict = judgeTrial(reading([...many(30, { hits: 18, marks }), ...control(500, { hits: 25, marks })]));
    expect(verdict).toMatchObject({ decision: 'rollback', reason, to_stage: 0, numbers: { worse: { what: reason, age_s: 10, bound: 0.02 } } });
    const { evidence, certain_from } = (verdict.numbers as { worse: { evidence: number; certain_from: number } }).worse;
    expect(evidence).toBeGreaterThan(certain_from);
  });

  test('not before the minimum of runs, however bad they are', () => {
    const bad = many(leastRuns, { hits: leastRuns, marks: 'failed' });
    expect(judgeTrial(reading([...bad, ...control()]))).toMatchObject({ decision: 'rollback' });
    expect(judgeTrial(reading([...bad.slice(1), ...control()]))).toMatchObject({ decision: 'hold', reason: 'too_few_runs' });
  });

  test('not for runs that have not reached the youngest age', () => {
    expect(judgeTrial(reading([...many(40, { age_s: 9, hits: 40, marks: 'failed' }), ...control()]))).toMatchObject({ decision: 'hold' });
  });

  test('not while the others fail as often', () => {
    expect(judgeTrial(reading([...many(60, { hits: 30, marks: 'failed' }), ...control(60, { hits: 30, marks: 'failed' })])).decision).not.toBe('rollback');
  });

  test('when completed runs certainly take longer, or cost more, than their ratio allows', () => {
    expect(judgeTrial(reading([...many(60, { active_s: 3 }), ...control()]))).toMatchObject({ decision: 'rollback', reason: 'latency', numbers: { latency: { ratio: expect.closeTo(3, 1) as number } } });
    expect(judgeTrial(reading([...many(60, { cost_usd: 0.05 }), ...control()]))).toMatchObject({ decision: 'rollback', reason: 'cost' });
    expect(judgeTrial(reading([...many(40, { active_s: 30 }), ...control()]))).toMatchObject({ decision: 'hold', reason: 'too_few_runs' });
  });

  test('not for cost where what is in use costs nothing', () => {
    expect(judgeTrial(reading([...many(60, { cost_usd: 0.05 }), ...control(500, { cost_usd: 0 })]))).toMatchObject({ decision: 'promote', numbers: { cost: { ratio: null } } });
  });

  test('also while promotion is paused; never again of what was rolled back', () => {
    const runs = [...many(30, { hits: 30, marks: 'failed' }), ...control()];
    expect(judgeTrial(reading(runs, { status: 'paused' })).decision).toBe('rollback');
    expect(judgeTrial(reading(runs, { status: 'rolled_back', stage: 0 }))).toMatchObject({ decision: 'hold', reason: 'rolled_back' });
  });
});

describe('promotion', () => {
  const fine = [...many(50), ...control()];

  test.each([[5, 25], [25, 50], [50, 100]])('from %i to %i %% when the minimum of runs has ended within the bounds', (stage, to_stage) => {
    expect(judgeTrial(reading(fine, { stage }))).toMatchObject({ decision: 'promote', reason: 'within_bounds', to_stage });
    expect(judgeTrial(reading(fine.slice(1), { stage }))).toMatchObject({ decision: 'hold', reason: 'too_few_runs' });
  });

  test('counts runs that have ended, not those that go on', () => {
    expect(judgeTrial(reading([...many(49), ...many(30, { took_s: null }), ...control()]))).toMatchObject({ decision: 'hold', reason: 'too_few_runs' });
  });

  test('not while more runs than allowed have failed as measured, or took longer', () => {
    expect(judgeTrial(reading([...many(50, { hits: 5, marks: 'failed' }), ...control()]))).toMatchObject({ decision: 'hold', reason: 'not_within_bounds_yet' });
    expect(judgeTrial(reading([...many(50, { active_s: 1.6 }), ...control()]))).toMatchObject({ decision: 'hold', reason: 'not_within_bounds_yet' });
  });

  test('not while it is paused, and not beyond the last stage', () => {
    expect(judgeTrial(reading(fine, { status: 'paused' }))).toMatchObject({ decision: 'hold', reason: 'paused' });
    expect(judgeTrial(reading(fine, { stage: 50, definition: { ...definition, stages: [0, 50] } }))).toMatchObject({ decision: 'hold', reason: 'last_stage' });
    expect(judgeTrial(reading([], { stage: 100 }))).toMatchObject({ decision: 'hold', reason: 'last_stage' });
  });

  test('from stage 0 when there is something to compare with', () => {
    expect(judgeTrial(reading([], { stage: 0 }, 49))).toMatchObject({ decision: 'hold', reason: 'too_few_runs' });
    expect(judgeTrial(reading([], { stage: 0 }, 50))).toMatchObject({ decision: 'promote', reason: 'baseline', to_stage: 5 });
    expect(judgeTrial(reading([], { stage: 0, status: 'paused' }, 50))).toMatchObject({ decision: 'hold', reason: 'paused' });
  });
});

test('every verdict has the numbers it was made on', () => {
  const { numbers } = judgeTrial(reading([...many(60, { hits: 2, marks: 'failed' }), ...control()]));
  expect(numbers).toMatchObject({
    min_runs: 50, bounds: definition.bounds, alpha: 0.015, totals: { canary: noTotals },
    latency: { canary: expect.closeTo(1, 1) as number, control: expect.closeTo(1, 1) as number, ratio: expect.closeTo(1, 1) as number },
  });
  expect((numbers.at_equal_age as unknown[])[0]).toEqual({
    age_s: 10, canary: { runs: 60, ended: 60, failed: 2, erred: 0, invalid: 0, tool_failed: 0 }, control: { runs: 500, ended: 500, failed: 25, erred: 0, invalid: 0, tool_failed: 0 } });
  expect(JSON.parse(JSON.stringify(numbers))).toEqual(numbers);
});
