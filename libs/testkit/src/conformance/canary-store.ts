/** The canary store's conformance suite: K1 to K6 of the port, for the double and for Redis alike. */
import type { AssignRun, CanaryDecision, CanaryDefinition, CanaryOutcome, CanaryReading, CanaryStore } from '@treadle/engine';
import { mostDecisions, mostRuns, noTotals } from '@treadle/engine';
import { beforeEach, describe, expect, it } from 'vitest';

const definition: CanaryDefinition = { model: 'next', stages: [0, 5, 50, 100], min_runs: 10, bounds: { error_rate_delta: 0.02, latency_ratio: 1.5, cost_ratio: 2 } };

/** Registers the suite with vitest. `factory` makes an empty store for each test. */
export function canaryStoreConformance(name: string, factory: () => CanaryStore | Promise<CanaryStore>): void {
  describe(`canary store: ${name}`, () => {
    let store: CanaryStore;
    let made = 0;
    beforeEach(async () => { store = await factory(); });

    const runOf = (over: Partial<AssignRun> = {}): AssignRun => ({ chain: 'c', model: 'next', run_id: `run_${++made}`, bucket: 50, run_at_ms: null, ...over });
    const outcomeOf = (run_id: string, over: Partial<CanaryOutcome> = {}): CanaryOutcome => ({
      chain: 'c', run_id, ended_ms: 2_000_000_000_000, verdict: 'completed', stop_reason: 'answered', errors: {}, validation_failures: 0, tool_calls: 0, tool_errors: 0, active_s: 1.5,
      cost_usd: 0, ...over });
    const decisionOf = (to_stage: number, over: Partial<CanaryDecision> = {}): CanaryDecision => ({
      id: `d${++made}`, at_ms: 1, decision: 'set', by: 'somebody', model: 'next', from_stage: 0, to_stage, status: 'active', reason: 'by_hand', numbers: { seen: 1 }, ...over });
    const reading = async (decisions = 10): Promise<CanaryReading> => (await store.read('c', { decisions, runs: true }))!;
    const moveTo = async (stage: number, over: Partial<CanaryDecision> = {}): Promise<string> => store.decide('c', (await reading()).state.version, decisionOf(stage, over));

    describe('K1, one trial per chain', () => {
      it('begins at stage 0, active and empty', async () => {
        expect(await store.read('c', { decisions: 10, runs: true })).toBeNull();
        expect(await store.declare('c', definition)).toBe('begun');
        expect(await reading()).toEqual({
          state: { chain: 'c', definition, stage: 0, status: 'active', since_ms: expect.any(Number) as number, version: 1 }, now_ms: expect.any(Number) as number,
          runs: [], totals: { canary: noTotals, control: noTotals }, decisions: [] });
        expect(await store.read('another', { decisions: 10, runs: true })).toBeNull();
      });

      it('keeps its place for the same model, also when bounds and stages change around it', async () => {
        await store.declare('c', definition);
        await moveTo(5);
        await store.assign(runOf());
        const before = await reading();
        expect(await store.declare('c', definition)).toBe('kept');
        expect((await reading()).state).toEqual(before.state);
        const changed = { ...definition, stages: [0, 5, 100], min_runs: 20 };
        expect(await store.declare('c', changed)).toBe('kept');
        const after = await reading();
        expect(after).toMatchObject({ state: { definition: changed, stage: 5, status: 'active', version: before.state.version + 1 } });
        expect(after.runs).toHaveLength(1);
      });

      it.each([['another model', { ...definition, model: 'other' }], ['stages without the present one', { ...definition, stages: [0, 10, 100] }]])('%s begins anew', async (_, changed) => {
        await store.declare('c', definition);
        await moveTo(5);
        await store.assign(runOf());
        expect(await store.declare('c', changed)).toBe('begun');
        expect(await reading()).toMatchObject({ state: { definition: changed, stage: 0, status: 'active' }, runs: [] });
        expect((await reading()).decisions).toHaveLength(1);
      });
    });

    describe('K2, arms', () => {
      it('are drawn by the bucket at the stage of the moment, and stay', async () => {
        await store.declare('c', definition);
        const first = runOf({ bucket: 4.9 });
        expect(await store.assign(first)).toEqual({ type: 'assigned', arm: 'control', stage: 0 });
        await moveTo(5);
        expect(await store.assign(runOf({ bucket: 4.999 }))).toEqual({ type: 'assigned', arm: 'canary', stage: 5 });
        const other = runOf({ bucket: 5 });
        expect(await store.assign(other)).toEqual({ type: 'assigned', arm: 'control', stage: 5 });
        expect(await store.assign({ ...other, bucket: 0 })).toEqual({ type: 'assigned', arm: 'control', stage: 5 });
        expect((await reading()).runs.map((run) => run.arm).sort()).toEqual(['canary', 'control']);
      });

      it('are of this trial alone', async () => {
        expect(await store.assign(runOf())).toEqual({ type: 'none' });
        await store.declare('c', definition);
        expect(await store.assign(runOf({ model: 'other' }))).toEqual({ type: 'none' });
        expect((await reading()).runs).toEqual([]);
      });

      it('count nothing where there is nothing to compare: at 100 %, and after a rollback', async () => {
        await store.declare('c', definition);
        await moveTo(100);
        expect(await store.assign(runOf({ bucket: 99.9 }))).toEqual({ type: 'assigned', arm: 'canary', stage: 100 });
        await moveTo(0, { decision: 'rollback', status: 'rolled_back' });
        expect(await store.assign(runOf({ bucket: 0 }))).toEqual({ type: 'assigned', arm: 'control', stage: 0 });
        expect((await reading()).runs).toEqual([]);
      });

      it('take a run that is to begin later from then on', async () => {
        await store.declare('c', definition);
        await store.assign(runOf({ run_at_ms: 4_000_000_000_000 }));
        await store.assign(runOf({ run_at_ms: 1 }));
        const { runs, now_ms } = await reading();
        const [past, later] = runs.map((run) => run.start_ms).sort((a, b) => a - b);
        expect(later).toBe(4_000_000_000_000);
        expect(Math.abs(past! - now_ms)).toBeLessThan(60_000);
      });
    });

    it('a run that was assigned and not created takes no part; one that has ended does', async () => {
      await store.declare('c', definition);
      const [made, notMade] = [runOf(), runOf()];
      for (const run of [made, notMade]) await store.assign(run);
      await store.report(outcomeOf(made.run_id));
      for (const run of [made, notMade, runOf()]) await store.withdraw('c', run.run_id);
      await store.withdraw('another', notMade.run_id);
      expect((await reading()).runs).toMatchObject([{ ended: { failed: false } }]);
      expect(await store.report(outcomeOf(notMade.run_id))).toBe('not_counted');
      expect(await store.assign(notMade)).toMatchObject({ type: 'assigned' });
    });

    describe('K3, outcomes', () => {
      it('count once, in the arm that was given', async () => {
        await store.declare('c', definition);
        await moveTo(50);
        const [good, bad] = [runOf({ bucket: 10 }), runOf({ bucket: 90 })];
        for (const run of [good, bad]) await store.assign(run);
        const failed = outcomeOf(bad.run_id, {
          verdict: 'failed', stop_reason: 'max_consecutive_errors', errors: { timeout: 2, overloaded: 1 }, validation_failures: 3, tool_calls: 7, tool_errors: 4, active_s: 0.25, cost_usd: 1e-7 });
        for (const expected of ['counted', 'again', 'again']) expect(await store.report(outcomeOf(good.run_id, { cost_usd: 0.5 }))).toBe(expected);
        expect(await store.report(failed)).toBe('counted');
        const { totals, runs } = await reading();
        expect(totals).toEqual({
          canary: { ...noTotals, ended: 1, completed: 1, stop_reasons: { answered: 1 }, active_s: 1.5, cost_usd: 0.5 },
          control: {
            ended: 1, completed: 0, failed: 1, stop_reasons: { max_consecutive_errors: 1 }, errors: { overloaded: 1, timeout: 2 }, validation_failures: 3, tool_calls: 7, tool_errors: 4,
            active_s: 0.25, cost_usd: expect.closeTo(1e-7, 12) as number },
        });
        const at_ms = 2_000_000_000_000;
        expect(runs.find((run) => run.arm === 'canary')?.ended).toEqual({ at_ms, failed: false, erred: false, invalid: false, tool_failed: false, active_s: 1.5, cost_usd: 0.5 });
        expect(runs.find((run) => run.arm === 'control')?.ended).toEqual({ at_ms, failed: true, erred: true, invalid: true, tool_failed: true, active_s: 0.25, cost_usd: 1e-7 });
      });

      it('of ends that say nothing take the run out of the comparison', async () => {
        await store.declare('c', definition);
        const run = runOf();
        await store.assign(run);
        const outcome = outcomeOf(run.run_id, { verdict: 'neutral', stop_reason: 'interrupted' });
        expect([await store.report(outcome), await store.report(outcome)]).toEqual(['counted', 'not_counted']);
        expect(await reading()).toMatchObject({ runs: [], totals: { control: { ended: 1, completed: 0, failed: 0, stop_reasons: { interrupted: 1 } } } });
      });

      it('of runs of an earlier stage, or of none, count nowhere', async () => {
        await store.declare('c', definition);
        const early = runOf();
        await store.assign(early);
        await moveTo(5);
        expect(await store.report(outcomeOf(early.run_id))).toBe('not_counted');
        expect(await store.report(outcomeOf('run_unknown'))).toBe('not_counted');
        expect(await store.report(outcomeOf('run_unknown', { chain: 'another' }))).toBe('not_counted');
        expect((await reading()).totals).toEqual({ canary: noTotals, control: noTotals });
      });
    });

    it('runs are read where they are asked for', async () => {
      await store.declare('c', definition);
      await store.assign(runOf());
      expect(await store.read('c', { decisions: 0, runs: false })).toMatchObject({ state: { stage: 0 }, runs: [] });
      expect((await store.read('c', { decisions: 0, runs: true }))!.runs).toHaveLength(1);
    });

    describe('judging', () => {
      it('is due for one of all who ask within a while, and never where there is nothing to judge', async () => {
        expect(await store.due('c', 60_000)).toBe(false);
        await store.declare('c', definition);
        expect((await Promise.all(Array.from({ length: 10 }, () => store.due('c', 60_000)))).filter(Boolean)).toHaveLength(1);
        expect(await store.due('c', 0)).toBe(true);
        await moveTo(5);
        expect(await store.due('c', 60_000)).toBe(true);
        await moveTo(100);
        expect(await store.due('c', 0)).toBe(false);
        await moveTo(0, { decision: 'rollback', status: 'rolled_back' });
        expect(await store.due('c', 0)).toBe(false);
      });
    });

    describe('K4, decisions', () => {
      it('of several on the same state one is made', async () => {
        await store.declare('c', definition);
        const { version } = (await reading()).state;
        const replies = await Promise.all(Array.from({ length: 10 }, () => store.decide('c', version, decisionOf(5))));
        expect(replies.filter((reply) => reply === 'decided')).toHaveLength(1);
        expect((await reading()).decisions).toHaveLength(1);
        expect(await store.decide('another', 1, decisionOf(5))).toBe('conflict');
      });

      it('sent again is the same decision', async () => {
        await store.declare('c', definition);
        const decision = decisionOf(5);
        for (let times = 0; times < 2; times++) expect(await store.decide('c', 1, decision)).toBe('decided');
        expect(await reading()).toMatchObject({ state: { stage: 5, version: 2 }, decisions: [decision] });
      });

      it('that keep the stage keep its runs; a new stage begins with none', async () => {
        await store.declare('c', definition);
        await moveTo(50);
        const run = runOf();
        await store.assign(run);
        await store.report(outcomeOf(run.run_id));
        await moveTo(50, { decision: 'pause', status: 'paused' });
        const paused = await reading();
        expect(paused).toMatchObject({ state: { status: 'paused', stage: 50 }, totals: { control: { ended: 1 } } });
        expect(paused.runs).toHaveLength(1);
        await moveTo(5);
        expect(await reading()).toMatchObject({ state: { status: 'active', stage: 5 }, runs: [], totals: { canary: noTotals, control: noTotals } });
      });
    });

    it(`K5: the last ${mostDecisions} decisions are kept, newest first`, async () => {
      await store.declare('c', definition);
      const ids: string[] = [];
      for (let version = 1; version <= mostDecisions + 5; version++) {
        const decision = decisionOf(0);
        ids.unshift(decision.id);
        expect(await store.decide('c', version, decision)).toBe('decided');
      }
      expect((await reading(1000)).decisions.map((each) => each.id)).toEqual(ids.slice(0, mostDecisions));
      expect((await reading(2)).decisions.map((each) => each.id)).toEqual(ids.slice(0, 2));
      expect((await reading(0)).decisions).toEqual([]);
    });

    it('K6: of the runs of an arm the newest are kept', async () => {
      await store.declare('c', definition);
      await moveTo(50);
      const far = 4_000_000_000_000;
      for (let n = 0; n < mostRuns.canary + 3; n++) await store.assign(runOf({ run_id: `run_c${n}`, bucket: 0, run_at_ms: far + n }));
      await store.assign(runOf({ bucket: 99 }));
      const canary = (await reading()).runs.filter((run) => run.arm === 'canary').map((run) => run.start_ms);
      expect(canary).toHaveLength(mostRuns.canary);
      expect(Math.min(...canary)).toBe(far + 3);
      expect((await reading()).runs.filter((run) => run.arm === 'control')).toHaveLength(1);
    });
  });
}
