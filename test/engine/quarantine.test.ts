/** Who is counted when a worker dies: a run on its last chance is tried while nobody else can be blamed. */
import { expect, test } from 'vitest';
import type { Claim } from '@treadle/engine';
import { Quarantine } from '@treadle/engine';

interface Hold { readonly claim: Claim; readonly signal: AbortSignal; excused: boolean; readonly abort: () => void }

function hold(run_id: string): Hold {
  const controller = new AbortController();
  return { claim: { run_id, n: 1, epoch: 1, claim_id: run_id }, signal: controller.signal, excused: false, abort: () => { controller.abort(); } };
}

/** Counts of deaths by run, as the store would keep them. */
function world(...runs: string[]) {
  const counts = new Map(runs.map((run) => [run, 3]));
  const quarantine = new Quarantine({ recount: (claims, by) => {
    for (const { run_id } of claims) counts.set(run_id, (counts.get(run_id) ?? 0) + by);
    return Promise.resolve();
  } });
  return { quarantine, counts: () => Object.fromEntries(counts) };
}

test('while one is on trial, those beside it are excused, and those that are taken later', async () => {
  const { quarantine, counts } = world('suspect', 'beside', 'later');
  const [suspect, beside, later] = [hold('suspect'), hold('beside'), hold('later')];
  await quarantine.admit(beside);
  await quarantine.enter(suspect, () => [suspect, beside]);
  await quarantine.admit(later);
  expect(counts()).toEqual({ suspect: 3, beside: 2, later: 2 });
  quarantine.leave(suspect);
  // No trial follows: whoever is still there counts again.
  expect(counts()).toEqual({ suspect: 3, beside: 3, later: 3 });
});

test('a second one waits, excused, and is counted again when its turn has come', async () => {
  const { quarantine, counts } = world('a', 'b');
  const [a, b] = [hold('a'), hold('b')];
  await quarantine.enter(a, () => [a]);
  let on = false;
  const waiting = quarantine.enter(b, () => [b]).then(() => { on = true; });
  await new Promise(setImmediate);
  expect({ on, ...counts() }).toEqual({ on: false, a: 3, b: 2 });
  quarantine.leave(a);
  await waiting;
  expect({ on, ...counts() }).toEqual({ on: true, a: 3, b: 3 });
});

test('one that is aborted while it waits is let go, and does not stand in the way', async () => {
  const { quarantine, counts } = world('a', 'b', 'c');
  const [a, b, c] = [hold('a'), hold('b'), hold('c')];
  await quarantine.enter(a, () => [a]);
  const waiting = quarantine.enter(b, () => [a, b]);
  b.abort();
  await waiting;
  quarantine.leave(b);
  const next = quarantine.enter(c, () => [c]);
  quarantine.leave(a);
  await next;
  expect(counts()).toEqual({ a: 3, b: 2, c: 3 });
});

test('nobody is excused twice, however trials follow one another', async () => {
  const { quarantine, counts } = world('a', 'b', 'beside');
  const [a, b, beside] = [hold('a'), hold('b'), hold('beside')];
  await quarantine.enter(a, () => [a, beside]);
  const waiting = quarantine.enter(b, () => [b, beside]);
  quarantine.leave(a);
  await waiting;
  expect(counts()).toEqual({ a: 3, b: 3, beside: 2 });
  quarantine.leave(b);
  expect(counts()).toEqual({ a: 3, b: 3, beside: 3 });
});
