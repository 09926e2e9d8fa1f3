import { expect, test } from 'vitest';
import type { FleetUnderTest } from './suite.ts';

const long = 60_000;

export function benchTests(it: () => FleetUnderTest): void {
  test('are known to all, until they are over', async () => {
    const [one, other] = [it().join(), it().join()];
    await one.bench({ target: 'credential:x', reason: 'rate_limited', for_ms: long });
    await one.bench({ target: 'model:a', reason: 'model_not_found', for_ms: 50 });
    await it().passTime(60);
    const { benches, now_ms } = await other.exchange([]);
    expect(benches).toEqual([{ target: 'credential:x', reason: 'rate_limited', until_ms: expect.any(Number) }]);
    expect(benches[0]!.until_ms).toBeGreaterThan(now_ms);
    expect(await other.unbench('model:a')).toBe(false);
  });

  test('are over at the later of two times', async () => {
    const fleet = it().join();
    await fleet.bench({ target: 'credential:x', reason: 'quota_window', for_ms: long });
    const { benches } = await fleet.exchange([]);
    await fleet.bench({ target: 'credential:x', reason: 'rate_limited', for_ms: 10 });
    expect((await fleet.exchange([])).benches).toEqual(benches);
    await fleet.bench({ target: 'credential:x', reason: 'auth_invalid', for_ms: 2 * long });
    const [later] = (await fleet.exchange([])).benches;
    expect(later).toMatchObject({ reason: 'auth_invalid' });
    expect(later!.until_ms).toBeGreaterThan(benches[0]!.until_ms);
  });

  test('are left once', async () => {
    const [one, other] = [it().join(), it().join()];
    await one.bench({ target: 'credential:x', reason: 'auth_invalid', for_ms: long });
    expect(await other.unbench('credential:x')).toBe(true);
    expect(await one.unbench('credential:x')).toBe(false);
    expect((await one.exchange([])).benches).toEqual([]);
  });

  test('that are over are not left', async () => {
    const fleet = it().join();
    await fleet.bench({ target: 'credential:x', reason: 'rate_limited', for_ms: 20 });
    await it().passTime(30);
    expect(await fleet.unbench('credential:x')).toBe(false);
  });

  test('are bounded: the one that is over first goes', async () => {
    const fleet = it().join({ limits: { benches: 2 } });
    for (const [target, for_ms] of [['credential:a', 3 * long], ['credential:b', long], ['credential:c', 2 * long]] as const) {
      await fleet.bench({ target, reason: 'rate_limited', for_ms });
    }
    expect((await fleet.exchange([])).benches.map((each) => each.target).sort()).toEqual(['credential:a', 'credential:c']);
  });
}
