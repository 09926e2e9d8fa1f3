import type { ModelFleet, Rates, Reservation } from '@treadle/engine';
import { expect, test } from 'vitest';
import type { FleetUnderTest } from './suite.ts';

const long = 600_000;
const anyNumber: Rates = { requests_per_minute: null, tokens_per_minute: null, in_flight: null };
const target = 'credential:x';
let made = 0;

function ask(rates: Partial<Rates>, fields: Partial<Reservation> = {}): Reservation {
  made++;
  return { id: `id-${made}`, run_id: `run-${made}`, target, tokens: 100, lease_ms: long, rates: { ...anyNumber, ...rates }, ...fields };
}

/** Asks, and comes again whenever it was told to, until it is granted. */
async function untilGranted(it: FleetUnderTest, fleet: ModelFleet, reservation: Reservation): Promise<void> {
  for (let tries = 0; tries < 1000; tries++) {
    const reply = await fleet.reserve(reservation);
    if (reply.type === 'granted') return;
    expect(reply.wait_ms).toBeGreaterThan(0);
    await it.passTime(reply.wait_ms);
  }
  throw new Error('never granted');
}

async function granted(fleet: ModelFleet, reservations: readonly Reservation[]): Promise<number> {
  const replies = await Promise.all(reservations.map((reservation) => fleet.reserve(reservation)));
  return replies.filter((reply) => reply.type === 'granted').length;
}

export function rateTests(it: () => FleetUnderTest): void {
  windowTests(it);
  lineTests(it);
  placeTests(it);
}

function windowTests(it: () => FleetUnderTest): void {
  test('without limits grant everything', async () => {
    expect(await granted(it().join(), Array.from({ length: 50 }, () => ask({})))).toBe(50);
  });

  test('give fifty who ask at once a third of a minute’s requests, and the others a turn each', async () => {
    const fleet = it().join();
    const replies = await Promise.all(Array.from({ length: 50 }, () => fleet.reserve(ask({ requests_per_minute: 60 }))));
    expect(replies.filter((reply) => reply.type === 'granted')).toHaveLength(20);
    const waits = replies.flatMap((reply) => (reply.type === 'wait' ? [reply.wait_ms] : []));
    // The next twenty with the second quarter of the minute, the last ten with the third.
    expect(waits.filter((wait) => wait <= 16_000)).toHaveLength(20);
    expect(waits.filter((wait) => wait > 16_000 && wait <= 32_000)).toHaveLength(10);
  });

  test('give to many processes no more than to one', async () => {
    const members = Array.from({ length: 10 }, () => it().join());
    const replies = await Promise.all(members.flatMap((member) => Array.from({ length: 5 }, () => member.reserve(ask({ requests_per_minute: 9 })))));
    expect(replies.filter((reply) => reply.type === 'granted')).toHaveLength(3);
  });

  test('count tokens beside requests, and take both or neither', async () => {
    const fleet = it().join();
    const rates = { requests_per_minute: 6, tokens_per_minute: 3000 };
    const [first, second] = [ask(rates, { tokens: 900 }), ask(rates, { tokens: 200 })];
    expect(await granted(fleet, [first])).toBe(1);
    for (let tries = 0; tries < 3; tries++) expect(await granted(fleet, [second])).toBe(0);
    await fleet.settle(target, first.id, 0);
    // A third of six requests are two: had one that was refused taken its request, none would be left.
    expect(await granted(fleet, [second])).toBe(1);
    expect(await granted(fleet, [ask(rates, { tokens: 1 })])).toBe(0);
  });

  test('grant a request larger than a minute’s tokens when a whole minute’s are there', async () => {
    const options = { minuteMs: 1200 };
    const fleet = it().join(options);
    expect(await granted(fleet, [ask({ tokens_per_minute: 1000 }, { tokens: 5000 })])).toBe(1);
    await untilGranted(it(), fleet, ask({ tokens_per_minute: 1000 }, { tokens: 5000 }));
  });

  test('have nothing for a second one until a minute after the first has passed', async () => {
    const fleet = it().join();
    const begin_ms = it().nowMs();
    expect(await granted(fleet, [ask({ tokens_per_minute: 1000 }, { tokens: 5000 })])).toBe(1);
    const reply = await fleet.reserve(ask({ tokens_per_minute: 1000 }, { tokens: 1 }));
    const wait_ms = reply.type === 'wait' ? reply.wait_ms : 0;
    expect(it().nowMs() - begin_ms + wait_ms).toBeGreaterThanOrEqual(60_000);
    // What counting in sixtieths costs.
    expect(wait_ms).toBeLessThanOrEqual(61_000);
  });

  test('of one credential are nothing to another', async () => {
    const fleet = it().join();
    expect(await granted(fleet, [ask({ requests_per_minute: 1 }), ask({ requests_per_minute: 1 }, { target: 'credential:y' })])).toBe(2);
  });

  test('make what was estimated what was used', async () => {
    const fleet = it().join();
    const rates = { tokens_per_minute: 1000 };
    const [unused, more] = [ask(rates, { tokens: 300 }), ask(rates, { tokens: 300 })];
    expect(await granted(fleet, [unused])).toBe(1);
    expect(await granted(fleet, [more])).toBe(0);
    await fleet.settle(target, unused.id, 0);
    await fleet.settle(target, unused.id, 0);
    expect(await granted(fleet, [more])).toBe(1);
    await fleet.settle(target, more.id, 900);
    await fleet.settle(target, more.id, 0);
    expect(await granted(fleet, [ask(rates, { tokens: 200 })])).toBe(0);
  });

  test.each([{ requests_per_minute: 0 }, { tokens_per_minute: -1 }, { in_flight: Number.NaN }])('refuse %j', async (rates) => {
    await expect(it().join().reserve(ask(rates))).rejects.toThrow(RangeError);
  });
}

function lineTests(it: () => FleetUnderTest): void {
  const rates = { requests_per_minute: 1 };

  test('keep the place of a run that asks again, under another id too', async () => {
    const [one, other] = [it().join(), it().join()];
    await one.reserve(ask(rates));
    const waits: number[] = [];
    for (const [member, run_id] of [[one, 'first'], [one, 'second'], [other, 'first'], [one, 'second'], [other, 'third']] as const) {
      const reply = await member.reserve(ask(rates, { run_id }));
      if (reply.type === 'wait') waits.push(reply.wait_ms);
    }
    const [first, second, firstAgain, secondAgain, third] = waits as [number, number, number, number, number];
    // Each place is a minute and a sixtieth after the one before.
    expect(second - first).toBeGreaterThan(50_000);
    expect(firstAgain).toBeLessThanOrEqual(first);
    expect(secondAgain).toBeLessThanOrEqual(second);
    expect(second - firstAgain).toBeGreaterThan(50_000);
    expect(third - secondAgain).toBeGreaterThan(50_000);
  });

  const onePlace = { in_flight: 1 };

  test('let nobody pass a run that is still to come', async () => {
    const fleet = it().join({ lapseMs: long });
    const [flying, patient] = [ask(onePlace), ask(onePlace)];
    expect(await granted(fleet, [flying])).toBe(1);
    expect(await granted(fleet, [patient])).toBe(0);
    await fleet.settle(target, flying.id, 0);
    expect(await granted(fleet, [ask(onePlace)])).toBe(0);
    expect(await granted(fleet, [patient])).toBe(1);
  });

  test('pass a run that does not come, and keep its place', async () => {
    const [hasty, fleet] = [it().join({ lapseMs: 20 }), it().join({ lapseMs: long })];
    const [flying, late, quick, newcomer] = [ask(onePlace), ask(onePlace), ask(onePlace), ask(onePlace)];
    expect(await granted(fleet, [flying])).toBe(1);
    const told = await fleet.reserve(late);
    if (told.type === 'wait') await it().passTime(told.wait_ms + 30);
    await fleet.settle(target, flying.id, 0);
    expect(await granted(hasty, [quick])).toBe(1);
    expect(await granted(fleet, [newcomer])).toBe(0);
    await fleet.settle(target, quick.id, 0);
    expect(await granted(fleet, [newcomer])).toBe(0);
    expect(await granted(fleet, [late])).toBe(1);
  });

  test('forget a run that stays away', async () => {
    const [forgetful, fleet] = [it().join({ forgetMs: 20 }), it().join({ lapseMs: long })];
    const [flying, gone, next] = [ask(onePlace), ask(onePlace), ask(onePlace)];
    expect(await granted(fleet, [flying])).toBe(1);
    const told = await fleet.reserve(gone);
    if (told.type === 'wait') await it().passTime(told.wait_ms + 30);
    expect(await granted(forgetful, [next])).toBe(0);
    expect(await granted(fleet, [gone])).toBe(0);
    await fleet.settle(target, flying.id, 0);
    expect(await granted(fleet, [gone])).toBe(0);
    expect(await granted(fleet, [next])).toBe(1);
  });

  test('tell those beyond the longest line to wait without a place', async () => {
    const fleet = it().join({ limits: { waiting: 1 } });
    await fleet.reserve(ask(rates));
    await fleet.reserve(ask(rates, { run_id: 'first' }));
    const beyond = [await fleet.reserve(ask(rates)), await fleet.reserve(ask(rates))];
    const waits = beyond.map((reply) => (reply.type === 'wait' ? Math.round(reply.wait_ms / 10_000) : 0));
    expect(waits[0]).toBeGreaterThanOrEqual(11);
    expect(Math.abs(waits[0]! - waits[1]!)).toBeLessThanOrEqual(1);
  });
}

function placeTests(it: () => FleetUnderTest): void {
  const rates = { in_flight: 2 };

  test('have as many places in flight as are said, and give a place that is left to the next', async () => {
    const fleet = it().join();
    const asks = Array.from({ length: 50 }, () => ask(rates));
    const replies = await Promise.all(asks.map((each) => fleet.reserve(each)));
    expect(replies.map((reply) => reply.type).filter((type) => type === 'granted')).toHaveLength(2);
    const flying = asks.filter((_, index) => replies[index]!.type === 'granted');
    const waiting = asks.filter((_, index) => replies[index]!.type === 'wait');
    await fleet.settle(target, flying[0]!.id, 10);
    expect(await granted(fleet, waiting)).toBe(1);
  });

  test('answer a reservation that is asked for again as before, and count it once', async () => {
    const [one, other] = [it().join(), it().join()];
    const first = ask({ in_flight: 2, requests_per_minute: 6, tokens_per_minute: 600 });
    for (const member of [one, other, one]) expect(await member.reserve(first)).toEqual({ type: 'granted' });
    expect(await granted(one, [ask(first.rates)])).toBe(1);
    expect(await granted(one, [ask(first.rates)])).toBe(0);
  });

  test('are free when a lease has run out: no dead process keeps one', async () => {
    const [dead, living] = [it().join(), it().join()];
    await dead.reserve(ask({ in_flight: 1 }, { lease_ms: 50 }));
    await it().passTime(60);
    expect(await granted(living, [ask({ in_flight: 1 })])).toBe(1);
  });

  test('are held from the last renewal on', async () => {
    const fleet = it().join();
    const first = ask({ in_flight: 1 });
    await fleet.reserve(first);
    await fleet.renew(target, first.id, 50);
    await it().passTime(60);
    expect(await granted(fleet, [ask({ in_flight: 1 })])).toBe(1);
  });

  test('are held for longer by who renews in time', async () => {
    const fleet = it().join();
    const first = ask({ in_flight: 1 }, { lease_ms: 3000 });
    await fleet.reserve(first);
    await fleet.renew(target, first.id, long);
    await it().passTime(3100);
    expect(await granted(fleet, [ask({ in_flight: 1 })])).toBe(0);
  });

  test('that were given up or left are not taken back by a late word', async () => {
    const fleet = it().join();
    const dead = ask({ in_flight: 1 }, { lease_ms: 20 });
    await fleet.reserve(dead);
    await it().passTime(30);
    const living = ask({ in_flight: 1 });
    expect(await granted(fleet, [living])).toBe(1);
    await fleet.renew(target, dead.id, long);
    await fleet.settle(target, dead.id, 0);
    expect(await granted(fleet, [ask({ in_flight: 1 }, { run_id: 'next' })])).toBe(0);
    await fleet.settle(target, living.id, 1);
    await fleet.renew(target, living.id, long);
    expect(await granted(fleet, [ask({ in_flight: 1 }, { run_id: 'next' })])).toBe(1);
  });

  test('take nothing of the rate while they are full', async () => {
    const fleet = it().join();
    const limits = { in_flight: 1, requests_per_minute: 6 };
    const first = ask(limits);
    await fleet.reserve(first);
    const waiting = ask(limits);
    for (let tries = 0; tries < 10; tries++) expect(await granted(fleet, [waiting])).toBe(0);
    await fleet.settle(target, first.id, 0);
    expect(await granted(fleet, [waiting])).toBe(1);
  });

  test('end: everybody who comes when told to gets one', async () => {
    const fleet = it().join({ minuteMs: 1200 });
    const asks = Array.from({ length: 10 }, () => ask({ in_flight: 3 }, { lease_ms: 100 }));
    await Promise.all(asks.map((each) => fleet.reserve(each)));
    for (const each of asks) await untilGranted(it(), fleet, each);
  });
}
