import { expect, test } from 'vitest';
import { createMemoryFleet } from '../../doubles/model-fleet.ts';
import { modelFleetConformance } from './suite.ts';

modelFleetConformance('in memory', () => {
  const fleet = createMemoryFleet();
  return { join: (options) => fleet.join(options), passTime: (ms) => { fleet.passTime(ms); }, nowMs: () => fleet.now(), still: true, courses: 500, courseMinuteMs: 60_000 };
});

test('the double that is away throws and changes nothing', async () => {
  const fleet = createMemoryFleet();
  const member = fleet.join();
  fleet.away(true);
  await expect(member.bench({ target: 'model:a', reason: 'timeout', for_ms: 1000 })).rejects.toMatchObject({ name: 'StoreAway' });
  fleet.away(false);
  expect((await member.exchange([])).benches).toEqual([]);
});
