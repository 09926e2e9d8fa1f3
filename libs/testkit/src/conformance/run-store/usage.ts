import { noUsage, type Usage } from '@treadle/core';
import type { RunUse, UsageRow } from '@treadle/engine';
import { expect, test } from 'vitest';
import type { Driver } from './driver.ts';

const day = new Date().toISOString().slice(0, 10);
const use = (models: RunUse['models'], over: Partial<RunUse> = {}): RunUse => ({ tenant: 'acme', agent: 'a', day, models, ...over });
const used = (over: Partial<Usage>): Usage => ({ ...noUsage, ...over });
const sorted = (rows: readonly UsageRow[]): UsageRow[] => rows.toSorted((one, other) => JSON.stringify(one) < JSON.stringify(other) ? -1 : 1);

export function usageTests(it: () => Driver): void {
  const ended = async (): Promise<string> => (await it().after({ type: 'end' }, 'completed')).run_id;
  const rows = async (tenant = 'acme', from_day = day, to_day = day): Promise<UsageRow[]> => sorted(await it().store.usage({ tenant, from_day, to_day }));
  const runsOf = (all: readonly UsageRow[]): number[] => all.map(({ runs }) => runs);

  test('a run counts once, however often it is finished, by whomever, and whatever is said then', async () => {
    const run_id = await ended();
    const mine = use({ m: used({ input_tokens: 7, output_tokens: 3, cached_tokens: 2, wasted_tokens: 1, cost_usd: 0.1, wasted_cost_usd: 0.03 }) });
    expect(await rows()).toEqual([]);
    await it().store.finished(run_id, mine);
    await Promise.all([it().store.finished(run_id, mine), it().store.finished(run_id, use({ other: used({ input_tokens: 9 }) }))]);
    await it().store.finished(run_id);
    expect(await rows()).toEqual(sorted([
      { day, agent: 'a', model: null, runs: 1, usage: noUsage },
      { day, agent: 'a', model: 'm', runs: 1, usage: { input_tokens: 7, output_tokens: 3, cached_tokens: 2, wasted_tokens: 1, cost_usd: 0.1, wasted_cost_usd: 0.03 } },
    ]));
  });

  test('one that was finished before anybody said what it had used is counted when somebody does', async () => {
    const run_id = await ended();
    await it().store.finished(run_id, null);
    expect(await rows()).toEqual([]);
    await it().store.finished(run_id, use({}));
    expect(runsOf(await rows())).toEqual([1]);
  });

  test('runs add up by day, agent and model, each tenant’s for itself', async () => {
    await it().store.finished(await ended(), use({ m: used({ input_tokens: 1, cost_usd: 0.1 }) }));
    await it().store.finished(await ended(), use({ m: used({ input_tokens: 10, cost_usd: 0.2 }), n: used({ output_tokens: 5 }) }));
    await it().store.finished(await ended(), use({ m: used({ input_tokens: 100 }) }, { agent: 'b "b"' }));
    await it().store.finished(await ended(), use({ m: used({ input_tokens: 1000 }) }, { tenant: 'other' }));
    const mine = await rows();
    const of = (agent: string, model: string | null) => mine.find((row) => row.agent === agent && row.model === model);
    expect(of('a', null)?.runs).toBe(2);
    expect(of('a', 'm')).toMatchObject({ runs: 2, usage: { input_tokens: 11 } });
    expect(of('a', 'm')!.usage.cost_usd).toBeCloseTo(0.3, 12);
    expect(of('a', 'n')).toMatchObject({ runs: 1, usage: { output_tokens: 5 } });
    expect(of('b "b"', 'm')).toMatchObject({ runs: 1, usage: { input_tokens: 100 } });
    expect(mine).toHaveLength(5);
    expect(runsOf(await rows('other'))).toEqual([1, 1]);
    expect(await rows('nobody')).toEqual([]);
  });

  test('a day is asked for by its date, both ends of a range included', async () => {
    const before = new Date(Date.parse(day) - 86_400_000).toISOString().slice(0, 10);
    await it().store.finished(await ended(), use({}, { day: before }));
    await it().store.finished(await ended(), use({}));
    expect((await rows('acme', before, day)).map((row) => row.day).sort()).toEqual([before, day]);
    expect((await rows('acme', day, day)).map((row) => row.day)).toEqual([day]);
    expect(await rows('acme', day, before)).toEqual([]);
  });

  test('a run that has not ended, or is not there, counts nothing', async () => {
    await it().store.finished(await it().create(), use({ m: used({ input_tokens: 1 }) }));
    await it().store.finished('run_0193f0c0a0007000800000000000aa00', use({ m: used({ input_tokens: 1 }) }));
    expect(await rows()).toEqual([]);
  });
}
