/** A process that stood still between a write and its answer asks again before it begins a call. */
import { expect, test } from 'vitest';
import { initialState } from '@treadle/core';
import { WarmRuns, type TurnStore } from '@treadle/engine';
import { RunHold } from '../../libs/engine/src/hold.ts';

const claim = { run_id: `run_${'0'.repeat(32)}`, n: 1, epoch: 1, claim_id: 'a' };

function world(watched: 'held' | 'fenced') {
  let nowMs = 0;
  let asked = 0;
  let standsStillMs = 0;
  const store = {
    commit: () => { nowMs += standsStillMs; return Promise.resolve({ type: 'committed', inbox: [] }); },
    watch: () => { asked++; return Promise.resolve([watched === 'held' ? { type: 'held', inbox: [] } : { type: 'fenced' }]); },
  } as unknown as TurnStore;
  const hold = new RunHold(
    { store, clock: { nowMs: () => nowMs, monotonicMs: () => nowMs }, random: { uuid: () => 'u', jitter: () => 0 }, warm: new WarmRuns() },
    { claim, state: { ...initialState, run_id: claim.run_id }, inbox: [], inbox_in: 0, ledger: [] },
  );
  return { hold, asked: () => asked, standStill: (ms: number) => { standsStillMs = ms; } };
}

test('what was answered at once is not asked about', async () => {
  const { hold, asked } = world('fenced');
  await hold.begin([]);
  await hold.confirm();
  expect([asked(), hold.left]).toEqual([0, null]);
});

test.each([['held', null], ['fenced', 'fenced']] as const)('an answer that took longer than it may is no news: the store says %s', async (said, left) => {
  const { hold, asked, standStill } = world(said);
  standStill(5000);
  await hold.begin([]);
  await hold.confirm();
  expect([asked(), hold.left]).toEqual([1, left]);
  expect(hold.signal.aborted).toBe(left !== null);
  if (left === null) {
    await hold.confirm();
    expect(asked()).toBe(1);
  }
});
