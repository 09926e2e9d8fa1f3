import { createMemoryWorkerRegistry } from '@treadle/testkit';
import { createMetrics } from '@treadle/telemetry';
import { expect, test } from 'vitest';
import { createPresence } from './presence.ts';

function presence(name: string, registry = createMemoryWorkerRegistry()) {
  const clock = { ms: 0, taken: [0, 0], in_hand: 0 };
  const metrics = createMetrics('worker');
  const made = createPresence({
    registry, metrics, report: { name, version: '1', concurrency: 50, started_at_ms: 0 }, monotonicMs: () => clock.ms,
    consumer: { load: () => clock.taken.map((taken, shard) => ({ taken, in_hand: shard === 0 ? clock.in_hand : 0 })) },
  });
  return { made, registry, metrics, async at(seconds: number, taken: [number, number], in_hand = 0) {
    Object.assign(clock, { ms: seconds * 1000, taken, in_hand });
    await made.beat();
  } };
}

test('the pace is that of all workers over the last minute, by shard', async () => {
  const one = presence('one');
  const other = presence('other', one.registry);
  await one.at(0, [0, 0]);
  expect(one.made.pace(0)).toBe(0);
  await one.at(10, [20, 0]);
  expect([one.made.pace(0), one.made.pace(1)]).toEqual([2, 0]);
  await other.at(0, [0, 0]);
  await other.at(10, [10, 5]);
  expect([other.made.pace(0), other.made.pace(1)]).toEqual([3, 0.5]);
  // What was taken more than a minute ago counts no longer.
  for (const seconds of [20, 70, 80]) await one.at(seconds, [20, 0]);
  expect(one.made.pace(0)).toBe(1);
});

test('a worker is seen with what it has in hand, drains, and leaves', async () => {
  const { made, registry, metrics, at } = presence('one');
  await at(1, [3, 0], 2);
  expect(await registry.list()).toMatchObject([{ name: 'one', state: 'running', turns_in_flight: 2, concurrency: 50 }]);
  expect(await metrics.registry.metrics()).toMatch(/treadle_turns_in_flight 2\n[^]*treadle_turn_slots 50/);
  made.drains();
  await at(2, [3, 0], 1);
  expect(await registry.list()).toMatchObject([{ state: 'draining', turns_in_flight: 1 }]);
  await made.leave();
  expect(await registry.list()).toEqual([]);
});
