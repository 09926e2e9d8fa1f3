import type { Outcomes } from '@treadle/engine';
import { expect, test } from 'vitest';
import type { FleetUnderTest } from './suite.ts';

const failed = (target: string, count: number): Outcomes => ({ target, ok: 0, failed: { overloaded: count } });

export function outcomeTests(it: () => FleetUnderTest): void {
  test('are heard by everybody else, once', async () => {
    const [one, other, third] = [it().join(), it().join(), it().join()];
    expect((await one.exchange([failed('model:a', 2)])).outcomes).toEqual([]);
    expect((await other.exchange([])).outcomes).toEqual([failed('model:a', 2)]);
    expect((await other.exchange([])).outcomes).toEqual([]);
    expect((await third.exchange([failed('model:b', 1)])).outcomes).toEqual([failed('model:a', 2)]);
    expect((await one.exchange([])).outcomes).toEqual([failed('model:b', 1)]);
  });

  test('are one sum for each target', async () => {
    const [one, other] = [it().join(), it().join()];
    await one.exchange([{ target: 'model:a', ok: 3, failed: { timeout: 1 } }, failed('host:h:1', 1)]);
    await one.exchange([{ target: 'model:a', ok: 1, failed: { timeout: 1, overloaded: 2 } }]);
    expect((await other.exchange([])).outcomes).toEqual([{ target: 'model:a', ok: 4, failed: { timeout: 2, overloaded: 2 } }, failed('host:h:1', 1)]);
  });

  test('of two exchanges under way at once are answered in one of them', async () => {
    const [one, other] = [it().join(), it().join()];
    await one.exchange([failed('model:a', 1)]);
    const views = await Promise.all([other.exchange([failed('model:b', 1)]), other.exchange([])]);
    expect(views.flatMap((view) => view.outcomes)).toEqual([failed('model:a', 1)]);
    expect((await one.exchange([])).outcomes).toEqual([failed('model:b', 1)]);
  });

  test('of fifty processes reach each of them whole', async () => {
    const members = Array.from({ length: 50 }, () => it().join());
    await Promise.all(members.map((member) => member.exchange([failed('model:a', 1)])));
    const newcomer = it().join();
    expect((await newcomer.exchange([])).outcomes).toEqual([failed('model:a', 50)]);
  });

  test('older than the window are left out, for those who come late too', async () => {
    const options = { windowMs: 200 };
    const [one, other] = [it().join(options), it().join(options)];
    await one.exchange([failed('model:a', 1)]);
    await it().passTime(250);
    expect((await other.exchange([])).outcomes).toEqual([]);
    expect((await it().join(options).exchange([])).outcomes).toEqual([]);
  });

  test('come with the store’s time', async () => {
    const [one, other] = [it().join(), it().join()];
    const first = (await one.exchange([])).now_ms;
    await it().passTime(50);
    expect((await other.exchange([])).now_ms).toBeGreaterThanOrEqual(first + 50);
  });
}
