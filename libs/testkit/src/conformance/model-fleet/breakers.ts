import type { ModelFleet, OpenBreaker } from '@treadle/engine';
import { expect, test } from 'vitest';
import type { FleetUnderTest } from './suite.ts';

const long = 60_000;
const id = 'model:a:overloaded';
const breaker = (for_ms: number, forced = false) => ({ target: 'model:a', error_type: 'overloaded' as const, for_ms, forced });

async function only(fleet: ModelFleet): Promise<OpenBreaker> {
  const { breakers } = await fleet.exchange([]);
  expect(breakers).toHaveLength(1);
  return breakers[0]!;
}

export function breakerTests(it: () => FleetUnderTest): void {
  openingTests(it);
  probeTests(it);
}

function openingTests(it: () => FleetUnderTest): void {
  test('opened by one are open for all', async () => {
    const [one, other] = [it().join(), it().join()];
    await one.open(breaker(long));
    const { now_ms, breakers } = await other.exchange([]);
    expect(breakers).toEqual([{ id, target: 'model:a', error_type: 'overloaded', openings: 1, forced: false, opened_at_ms: expect.any(Number), probe_at_ms: expect.any(Number) }]);
    expect(breakers[0]!.opened_at_ms).toBeLessThanOrEqual(now_ms);
    expect(breakers[0]!.probe_at_ms - breakers[0]!.opened_at_ms).toBe(long);
  });

  test('opened by fifty at once have opened once', async () => {
    const members = Array.from({ length: 50 }, () => it().join());
    await Promise.all(members.map((member) => member.open(breaker(long))));
    expect(await only(members[0]!)).toMatchObject({ openings: 1 });
  });

  test('stay as they are until their probe time has come; then openings rise', async () => {
    const fleet = it().join();
    await fleet.open(breaker(50));
    const first = await only(fleet);
    await it().passTime(60);
    await fleet.open(breaker(long));
    const second = await only(fleet);
    expect(second).toMatchObject({ openings: 2, forced: false });
    expect(second.opened_at_ms).toBeGreaterThan(first.opened_at_ms);
    await fleet.open(breaker(2 * long));
    expect(await only(fleet)).toEqual(second);
  });

  test('that are forced stay so, whatever is opened after, until they are closed', async () => {
    const fleet = it().join();
    await fleet.open(breaker(long));
    await fleet.open(breaker(0, true));
    const forced = await only(fleet);
    expect(forced).toMatchObject({ openings: 1, forced: true });
    await fleet.open(breaker(long));
    await fleet.open(breaker(long, true));
    expect(await only(fleet)).toEqual(forced);
    expect(await fleet.close(id)).toBe(true);
    expect((await fleet.exchange([])).breakers).toEqual([]);
  });

  test('are forgotten when they are closed, once', async () => {
    const [one, other] = [it().join(), it().join()];
    await one.open(breaker(0));
    await one.open(breaker(0));
    expect(await other.close(id)).toBe(true);
    expect(await one.close(id)).toBe(false);
    await one.open(breaker(long));
    expect(await only(other)).toMatchObject({ openings: 1 });
  });

  test('are one for each target and error type', async () => {
    const fleet = it().join();
    await fleet.open(breaker(long));
    await fleet.open({ ...breaker(long), error_type: 'timeout' });
    await fleet.open({ ...breaker(long), target: 'host:h:80' });
    expect((await fleet.exchange([])).breakers.map((each) => each.id).sort()).toEqual(['host:h:80:overloaded', id, 'model:a:timeout']);
  });

  test('are bounded: the oldest goes', async () => {
    const fleet = it().join({ limits: { breakers: 2 } });
    for (const target of ['model:a', 'model:b', 'model:c']) {
      await fleet.open({ ...breaker(long), target });
      await it().passTime(5);
    }
    await fleet.open({ ...breaker(long, true), target: 'model:c' });
    expect((await fleet.exchange([])).breakers.map((each) => each.target).sort()).toEqual(['model:b', 'model:c']);
  });
}

function probeTests(it: () => FleetUnderTest): void {
  test('are probed by one of fifty', async () => {
    const members = Array.from({ length: 50 }, () => it().join());
    await members[0]!.open(breaker(0));
    const taken = await Promise.all(members.map((member, index) => member.takeProbe(id, `token-${index}`, long)));
    expect(taken.filter((each) => each)).toHaveLength(1);
  });

  test('are not probed before their time, nor while they are forced', async () => {
    const fleet = it().join();
    await fleet.open(breaker(long));
    expect(await fleet.takeProbe(id, 'token', long)).toBe(false);
    await fleet.close(id);
    await fleet.open(breaker(0, true));
    expect(await fleet.takeProbe(id, 'token', long)).toBe(false);
  });

  test('that nobody knows to be open may be probed, by one', async () => {
    const fleet = it().join();
    expect(await fleet.takeProbe(id, 'one', long)).toBe(true);
    expect(await fleet.takeProbe(id, 'other', long)).toBe(false);
    expect(await fleet.takeProbe('model:b:overloaded', 'other', long)).toBe(true);
  });

  test('can be probed again when a lease has run out: no dead process keeps a probe', async () => {
    const [dead, living] = [it().join(), it().join()];
    expect(await dead.takeProbe(id, 'dead', 50)).toBe(true);
    await it().passTime(60);
    expect(await living.takeProbe(id, 'living', long)).toBe(true);
  });

  test('stay with the holder who asks again', async () => {
    const [one, other] = [it().join(), it().join()];
    expect(await one.takeProbe(id, 'one', 50)).toBe(true);
    expect(await one.takeProbe(id, 'one', long)).toBe(true);
    await it().passTime(60);
    expect(await other.takeProbe(id, 'other', long)).toBe(false);
  });

  test('are let go by their holder alone', async () => {
    const [one, other] = [it().join(), it().join()];
    await one.takeProbe(id, 'one', long);
    await other.dropProbe(id, 'other');
    expect(await other.takeProbe(id, 'other', long)).toBe(false);
    await one.dropProbe(id, 'one');
    await one.dropProbe(id, 'one');
    expect(await other.takeProbe(id, 'other', long)).toBe(true);
  });

  test('are closed by the probe that is held, not by one that took too long', async () => {
    const [slow, quick] = [it().join(), it().join()];
    await slow.open(breaker(0));
    expect(await slow.takeProbe(id, 'slow', 50)).toBe(true);
    await it().passTime(60);
    expect(await quick.takeProbe(id, 'quick', long)).toBe(true);
    expect(await slow.close(id, 'slow')).toBe(false);
    expect((await slow.exchange([])).breakers).toHaveLength(1);
    expect(await quick.close(id, 'quick')).toBe(true);
    expect((await slow.exchange([])).breakers).toEqual([]);
    expect(await slow.takeProbe(id, 'next', long)).toBe(true);
  });

  test('that a person forces meanwhile are closed by no probe', async () => {
    const [prober, person] = [it().join(), it().join()];
    await prober.open(breaker(0));
    expect(await prober.takeProbe(id, 'probe', long)).toBe(true);
    await person.open(breaker(0, true));
    expect(await prober.close(id, 'probe')).toBe(false);
    expect(await only(prober)).toMatchObject({ forced: true });
    expect(await person.close(id)).toBe(true);
  });
}
