/** What the breakers are told of time-outs; who finds room is tested with them, in `model-health.test.ts`. */
import { expect, test } from 'vitest';
import { Allowances } from './allowances.ts';

function world({ slots = 8, share = 0.5, volume = 20 } = {}) {
  let now = 1_000_000;
  const allowances = new Allowances({ slots, share, volume, nowMs: () => now });
  /** One call, an hour after the one before, which ends while so many others wait. */
  const call = (came: 'ok' | 'timeout' | 'server_error', waiting: number): number => {
    now += 3_600_000;
    const place = allowances.enter('a');
    const beside = Array.from({ length: slots }, () => allowances.take('a', 'beside')).filter((each) => each !== null);
    for (let n = 0; n < waiting; n++) allowances.crowdedMs('a', `run_${n}`);
    for (const each of beside) each.leave(null);
    return place.leave(came);
  };
  return { allowances, call, pass: (ms: number) => { now += ms; } };
}

test('with no reply between them, time-outs of a model that others wait for are told at once when they are as many as open a breaker, however far apart', () => {
  const { call } = world();
  expect(Array.from({ length: 5 }, () => call('timeout', 10))).toEqual([2, 4, 8, 20, 20]);
});

test('a reply between them begins the count anew, a refusal does not', () => {
  const { call } = world();
  expect([call('timeout', 10), call('timeout', 10), call('timeout', 10), call('ok', 10), call('timeout', 10)]).toEqual([2, 4, 8, 1, 4]);
  expect([call('server_error', 10), call('timeout', 10), call('timeout', 10)]).toEqual([1, 8, 20]);
});

test('where nobody waits each counts once, however many there are', () => {
  const { call } = world({ volume: 3 });
  expect(Array.from({ length: 6 }, () => call('timeout', 0))).toEqual([1, 1, 1, 1, 1, 1]);
});

test('it counts for no more than those who wait: one, here, and none when that one has not come again', () => {
  const { allowances, call, pass } = world();
  expect([call('timeout', 1), call('timeout', 1), call('timeout', 1)]).toEqual([1, 2, 2]);
  const place = allowances.enter('a');
  allowances.crowdedMs('a', 'run_gone');
  pass(60_000);
  expect(place.leave('timeout')).toBe(1);
});

test('those who wait now count, however many were sent away before and have not come again', () => {
  const { allowances, pass } = world();
  const places = Array.from({ length: 4 }, () => allowances.enter('a'));
  for (let n = 0; n < 20; n++) allowances.crowdedMs('a', `gone_${n}`);
  pass(60_000);
  for (let n = 0; n < 4; n++) allowances.crowdedMs('a', `run_${n}`);
  expect(places[0]!.leave('timeout')).toBe(2);
});

test('a place is left once', () => {
  const { allowances } = world();
  const place = allowances.enter('a');
  expect([place.leave('ok'), place.leave('ok')]).toEqual([1, 1]);
  expect(allowances.all()).toEqual([{ model: 'a', in_flight: 0, allowance: 5 }]);
});
