/** What one process makes of its calls' outcomes, alone. What a fleet makes of them is tested with the fleet. */
import type { ErrorType, ModelFailure } from '@treadle/core';
import type { ModelFleet, ModelOutcome } from '@treadle/engine';
import { createMemoryFleet } from '@treadle/testkit';
import { describe, expect, test } from 'vitest';
import { ModelHealth, type HeldPermit, type ModelHealthOptions, type Reached } from './model-health.ts';
import { meteredBy } from './targets.ts';
import { noRates } from './credentials.ts';

const model = (name: string, over: Partial<Reached> = {}): Reached => ({ name, provider: 'openai', base_url: `http://${name}.example/v1`, keys: [], strategy: 'fill_first', rates: noRates, ...over });
const failed = (error_type: ErrorType, retry_after_s: number | null = null): ModelOutcome => ({ type: 'failed', failure: { error_type, retry_after_s, detail: '', partial_text: '', usage: null } satisfies ModelFailure });
const replied: ModelOutcome = { type: 'replied', reply: { text: 'hi', thinking: '', provider_data: null, calls: [], finish: 'stop', finish_raw: 'stop', usage: { input_tokens: 1, output_tokens: 1, cached_tokens: 0, wasted_tokens: 0, cost_usd: 0 } } };
const empty: ModelOutcome = { type: 'replied', reply: { ...replied.reply, text: ' ' } };

function world(models: readonly Reached[], over: Partial<ModelHealthOptions> = {}) {
  let now = 1_700_000_000_000;
  let ids = 0;
  const moves: string[] = [];
  const health = new ModelHealth({
    models, nowMs: () => now, uuid: () => `id-${++ids}`, breakers: { volume: 4, openMs: 1000 },
    onTransition: ({ target, error_type }, to) => moves.push(`${target}:${error_type} ${to}`), ...over });
  const specs = models.map(({ name }) => ({ name }) as never);
  const ask = () => health.admit({ run_id: 'run_1', models: specs, tokens: 10 });
  const call = async (outcome: ModelOutcome): Promise<HeldPermit> => {
    const granted = await health.grant(models[0]!.name, '', 1);
    const permit = ((await ask()).permit ?? (granted.type === 'granted' ? granted.permit : null)) as HeldPermit;
    permit.settle(outcome);
    // opossum counts in a later microtask.
    await new Promise((resolve) => { setImmediate(resolve); });
    return permit;
  };
  return { health, moves, ask, call, pass: (ms: number) => { now += ms; }, names: async () => { const { unavailable, permit } = await ask(); permit?.release(); return { away: unavailable.map(({ model: name, why, wait }) => [name, why, wait?.wait_ms ?? null]), asked: permit?.model ?? null }; } };
}

describe('a probe', () => {
  test.each([['that went well', replied, 'close'], ['that failed', failed('server_error'), 'open']] as const)('%s is let go only when the fleet has been told: it closes for whoever holds it', async (_name, outcome, telling) => {
    const memory = createMemoryFleet();
    const fleet = memory.join();
    const told = Promise.withResolvers<void>();
    const heard: string[] = [];
    let slow = false;
    const late: ModelFleet = {
      ...fleet, dropProbe: (id, token) => { heard.push('dropped'); return fleet.dropProbe(id, token); },
      close: async (id, token) => { if (slow) await told.promise; heard.push('close'); return fleet.close(id, token); },
      open: async (breaker) => { if (slow) await told.promise; heard.push('open'); return fleet.open(breaker); },
    };
    const { call, ask, moves } = world([model('a')], { fleet: late, nowMs: () => memory.now() });
    for (let n = 0; n < 4; n++) await call(failed('server_error'));
    memory.passTime(1001);
    const permit = (await ask()).permit as HeldPermit;
    expect(moves).toEqual(['model:a:server_error open', 'model:a:server_error half_open']);
    heard.length = 0;
    slow = true;
    permit.settle(outcome);
    await new Promise((resolve) => { setImmediate(resolve); });
    expect(heard).toEqual([]);
    told.resolve();
    await expect.poll(() => heard).toEqual([telling, 'dropped']);
  });
});

describe('a breaker', () => {
  test('opens when its share of the outcomes is reached, and not below its volume', async () => {
    const { call, names, moves } = world([model('a'), model('b')]);
    for (let n = 0; n < 3; n++) await call(failed('server_error'));
    expect(await names()).toEqual({ away: [], asked: 'a' });
    await call(failed('server_error'));
    expect(await names()).toEqual({ away: [['a', 'breaker_open', 1000]], asked: 'b' });
    expect(moves).toEqual(['model:a:server_error open']);
  });

  test('stays closed while most calls go well', async () => {
    const { call, names } = world([model('a')]);
    for (let n = 0; n < 10; n++) {
      await call(failed('overloaded'));
      for (let ok = 0; ok < 3; ok++) await call(replied);
    }
    expect((await names()).away).toEqual([]);
  });

  test.each(Object.entries(meteredBy).filter(([, scope]) => scope === null).map(([type]) => type as ErrorType))('is not fed with %s', async (type) => {
    const { health, call } = world([model('a')]);
    for (let n = 0; n < 20; n++) await call(failed(type));
    expect(health.openBreakers()).toEqual([]);
  });

  test.each([['timeout', 'host:a.example'], ['connect_failed', 'host:a.example'], ['server_error', 'model:a'], ['tool_call_malformed', 'model:a']] as const)('of %s is one of %s', async (type, target) => {
    const { health, call } = world([model('a')]);
    for (let n = 0; n < 4; n++) await call(failed(type));
    expect(health.openBreakers()).toMatchObject([{ id: `${target}:${type}`, target, error_type: type }]);
  });

  test('counts empty replies', async () => {
    const { health, call } = world([model('a')]);
    for (let n = 0; n < 4; n++) await call(empty);
    expect(health.openBreakers()).toMatchObject([{ id: 'model:a:empty_response' }]);
  });

  test('of a host is open for every model that is served there', async () => {
    const { call, names } = world([model('a', { base_url: 'http://one.example' }), model('b', { base_url: 'http://one.example/other' }), model('c')]);
    for (let n = 0; n < 4; n++) await call(failed('connect_failed'));
    expect(await names()).toEqual({ away: [['a', 'breaker_open', 1000], ['b', 'breaker_open', 1000]], asked: 'c' });
  });

  test('lets one probe through when its time has come, and closes when that goes well', async () => {
    const { ask, call, names, pass, moves } = world([model('a'), model('b')]);
    for (let n = 0; n < 4; n++) await call(failed('server_error'));
    pass(1001);
    const probe = (await ask()).permit as HeldPermit;
    expect(probe.model).toBe('a');
    for (let n = 0; n < 50; n++) expect((await names()).asked).toBe('b');
    probe.settle(replied);
    expect(await names()).toEqual({ away: [], asked: 'a' });
    expect(moves).toEqual(['model:a:server_error open', 'model:a:server_error half_open', 'model:a:server_error closed']);
  });

  test('opens for longer when the probe fails, up to a bound', async () => {
    const { call, names, pass } = world([model('a'), model('b')]);
    for (let n = 0; n < 4; n++) await call(failed('server_error'));
    for (const openMs of [2000, 4000, 8000, 12_000, 12_000]) {
      pass(20_000);
      expect((await call(failed('server_error'))).model).toBe('a');
      expect((await names()).away).toEqual([['a', 'breaker_open', openMs]]);
    }
  });

  test('is probed by another when the probe was given back unused, or said nothing', async () => {
    const { ask, call, pass, names } = world([model('a'), model('b')]);
    for (let n = 0; n < 4; n++) await call(failed('server_error'));
    pass(1001);
    (await ask()).permit!.release();
    expect((await call(failed('content_blocked'))).model).toBe('a');
    expect((await names()).asked).toBe('a');
  });

  test('C68: there are never more breakers, meters or timers than targets times types, however many calls fail in whatever way', async () => {
    const { health, call } = world([model('a'), model('b'), model('c')]);
    const types = Object.keys(meteredBy) as ErrorType[];
    const timers = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;
    const before = timers();
    for (let n = 0; n < 5000; n++) await call(failed(n % 5 === 0 ? types[n % types.length]! : 'server_error'));
    const bound = 3 * 2 * types.filter((type) => meteredBy[type] !== null).length;
    expect(health.openBreakers().length).toBeGreaterThan(0);
    expect(health.openBreakers().length).toBeLessThanOrEqual(bound);
    expect(timers() - before).toBeLessThanOrEqual(bound * 3);
    health.close();
  });
});

describe('calls in flight', () => {
  const slots = 8;
  const held = (over: Partial<ModelHealthOptions> = {}) => {
    const w = world([model('a'), model('b')], { allowances: { slots, share: 0.5 }, ...over });
    const admit = async (run_id: string, ...names: string[]) => (await w.health.admit({ run_id, models: names.map((name) => ({ name })) as never, tokens: 1 })).permit as HeldPermit | null;
    /** As many as find room. */
    const fill = async (name: string): Promise<HeldPermit[]> => {
      const permits: HeldPermit[] = [];
      for (let n = 0; n < 3 * slots; n++) {
        const permit = await admit(`run_${n}`, name);
        if (permit !== null) permits.push(permit);
        else w.health.crowdedMs({ run_id: `run_${n}`, models: [{ name }] });
      }
      return permits;
    };
    const allowed = (name: string) => w.health.allowed().find((each) => each.model === name);
    return { ...w, admit, fill, allowed };
  };
  const crowded = (w: ReturnType<typeof held>, ...names: string[]) => w.health.crowdedMs({ run_id: 'run_x', models: names.map((name) => ({ name })) }) > 0;

  test('of models that have not answered yet take half of the slots together, and never keep one that does from being asked', async () => {
    const w = held();
    expect(await w.fill('a')).toHaveLength(4);
    expect([crowded(w, 'a'), crowded(w, 'b')]).toEqual([true, false]);
    const [only, ...more] = await w.fill('b');
    expect([more, crowded(w, 'b'), w.health.allowed()]).toEqual([[], true, [{ model: 'a', in_flight: 4, allowance: 3 }, { model: 'b', in_flight: 1, allowance: 1 }]]);
    only!.settle(replied);
    expect([await w.fill('b'), crowded(w, 'a')]).toEqual([expect.objectContaining({ length: 5 }), true]);
  });

  test('of models that have answered share half of the slots once each of them has timed out, until it answers again', async () => {
    const w = held({ breakers: { volume: 1_000_000 } });
    for (const name of ['a', 'b']) {
      for (let n = 0; n < 4; n++) (await w.admit('run', name))?.settle(replied);
      expect(w.allowed(name)?.allowance).toBe(slots);
      (await w.admit('run', name))?.settle(failed('timeout'));
    }
    expect([(await w.fill('a')).length, (await w.fill('b')).length]).toEqual([4, 1]);
    const hop = await w.health.grant('b', '', 1);
    if (hop.type === 'granted') hop.permit.settle(replied);
    expect(await w.fill('b')).toHaveLength(4);
  });

  test('grow by one with each reply, up to all slots', async () => {
    const w = held();
    const [first, ...rest] = await w.fill('a');
    first!.settle(replied);
    expect(w.allowed('a')).toEqual({ model: 'a', in_flight: 3, allowance: 5 });
    for (const permit of [...rest, ...await w.fill('a')]) permit.settle(replied);
    expect(w.allowed('a')).toEqual({ model: 'a', in_flight: 0, allowance: slots });
    await w.fill('a');
    // As many as there are slots need no leave: the slots are the bound.
    expect(crowded(w, 'a')).toBe(false);
  });

  test('are halved by a time-out, and are what they were after any other failure or an abort', async () => {
    const w = held({ breakers: { volume: 1_000_000 } });
    const after = async (type: ErrorType) => {
      const granted = await w.health.grant('a', '', 1);
      if (granted.type === 'granted') granted.permit.settle(failed(type));
      return w.allowed('a')?.allowance;
    };
    const types = Object.keys(meteredBy) as ErrorType[];
    for (const type of types.filter((each) => each !== 'timeout')) expect([type, await after(type)]).toEqual([type, 4]);
    expect([await after('timeout'), await after('timeout'), await after('timeout')]).toEqual([2, 1, 1]);
  });

  test('that were given back unused, or found no room in the rates, hold no place', async () => {
    const fleet = createMemoryFleet().join();
    const w = world([model('a', { rates: { ...noRates, in_flight: 1 } })], { fleet, allowances: { slots, share: 0.5 } });
    const permit = (await w.ask()).permit!;
    expect((await w.ask()).permit).toBeNull();
    expect(w.health.allowed()).toMatchObject([{ in_flight: 1 }]);
    permit.release();
    permit.release();
    expect(w.health.allowed()).toMatchObject([{ in_flight: 0 }]);
  });

  test('that nobody was asked about have a place, with room or without', async () => {
    const w = held();
    await w.fill('a');
    const hop = await w.health.grant('a', '', 1);
    expect([hop.type, w.allowed('a')?.in_flight]).toEqual(['granted', 5]);
    if (hop.type === 'granted') hop.permit.settle(replied);
    expect(w.allowed('a')).toMatchObject({ in_flight: 4, allowance: 5 });
  });

  test('hold a run at its model: it does not go to the next one of the chain, unless the first is away', async () => {
    const w = held({ breakers: { volume: 1 } });
    await w.fill('a');
    expect([await w.admit('run', 'a', 'b'), crowded(w, 'a', 'b')]).toEqual([null, true]);
    const hop = await w.health.grant('a', '', 1);
    if (hop.type === 'granted') hop.permit.settle(failed('server_error'));
    await new Promise((resolve) => { setImmediate(resolve); });
    expect([crowded(w, 'a', 'b'), (await w.admit('run', 'a', 'b'))?.model]).toEqual([false, 'b']);
  });

  test.each([['while others wait, and open the breaker as if all slots had been theirs', true], ['of a run that is alone count once', false]])('that time out %s', async (_what, others) => {
    const w = held({ breakers: { volume: 20 } });
    let timeouts = 0;
    for (; timeouts < 12 && w.moves.length === 0; timeouts++) {
      const [first, ...rest] = others ? await w.fill('a') : [await w.admit('run', 'a')];
      for (const permit of rest) permit?.release();
      first!.settle(failed('timeout'));
      await new Promise((resolve) => { setImmediate(resolve); });
      w.pass(1000);
    }
    // 2, 4, then 8 each: 20 with the fourth.
    expect([timeouts, w.moves]).toEqual(others ? [4, ['host:a.example:timeout open']] : [12, []]);
  });

  test('that time out together stand for what they were when they began, not for what is allowed after the first of them', async () => {
    const w = held({ breakers: { volume: 9 } });
    for (const permit of await w.fill('a')) permit.settle(failed('timeout'));
    await new Promise((resolve) => { setImmediate(resolve); });
    expect([w.allowed('a')?.allowance, w.moves]).toEqual([1, []]);
  });

  test('of a model that answers between its time-outs open nothing', async () => {
    const w = held({ breakers: { volume: 20 } });
    for (let n = 0; n < 20; n++) {
      const [first, second, ...rest] = await w.fill('a');
      for (const permit of rest) permit.release();
      first!.settle(failed('timeout'));
      await new Promise((resolve) => { setImmediate(resolve); });
      const ok = second ?? await w.admit('run', 'a');
      for (let times = 0; times < 8; times++) (times === 0 ? ok : await w.admit('run', 'a'))?.settle(replied);
      await new Promise((resolve) => { setImmediate(resolve); });
    }
    expect(w.moves).toEqual([]);
  });

  test('send a run away for longer the more were sent away before, until the model answers', async () => {
    const w = held();
    const [first] = await w.fill('a');
    w.pass(60_000);
    const waits = Array.from({ length: 200 }, () => w.health.crowdedMs({ run_id: 'run_x', models: [{ name: 'a' }] }));
    expect(waits.at(-1)).toBeGreaterThan(10_000);
    first!.settle(replied);
    await w.fill('a');
    expect(w.health.crowdedMs({ run_id: 'run_x', models: [{ name: 'a' }] })).toBeLessThan(500);
  });

  test('a share of one holds back nobody, whatever the calls come to', async () => {
    const w = held({ allowances: { slots, share: 1 }, breakers: { volume: 1_000_000 } });
    for (let n = 0; n < 5; n++) (await w.admit('run', 'a'))?.settle(failed('timeout'));
    expect([(await w.fill('a')).length, crowded(w, 'a')]).toEqual([3 * slots, false]);
  });
});

describe('a bench', () => {
  test('of a quota keeps its key from being asked until it is over; another key serves', async () => {
    const { call, names, pass, health } = world([model('a', { keys: ['k1', 'k2'] })]);
    const first = await call(failed('quota_window', 2820));
    expect(first.credential.key).toBe('k1');
    expect(health.otherKey('a')).toBe(true);
    expect((await call(failed('quota_window', 60))).credential.key).toBe('k2');
    expect(health.otherKey('a')).toBe(false);
    expect((await names()).away).toEqual([['a', 'credential_benched', 60_000]]);
    pass(60_001);
    expect((await call(replied)).credential.key).toBe('k2');
  });

  test('is shared by models with the same key at the same host', async () => {
    const { call, names } = world([model('a', { keys: ['k'], base_url: 'http://one.example' }), model('b', { keys: ['k'], base_url: 'http://one.example' })]);
    await call(failed('billing_exhausted'));
    expect((await names()).away).toEqual([['a', 'credential_benched', null], ['b', 'credential_benched', null]]);
  });

  test.each(['auth_invalid', 'access_denied', 'billing_exhausted', 'model_not_found'] as const)('for %s is not waited for', async (type) => {
    const { call, names } = world([model('a', { keys: ['k'] }), model('b')]);
    await call(failed(type));
    expect(await names()).toEqual({ away: [['a', expect.any(String), null]], asked: 'b' });
  });

  test('a burst with one key benches nothing: asking is how one learns that it is over', async () => {
    const { call, names } = world([model('a', { keys: ['k'] })]);
    await call(failed('rate_limited', 7));
    expect((await names()).away).toEqual([]);
  });

  test('an overload benches no key', async () => {
    const { call, names } = world([model('a', { keys: ['k1', 'k2'] })]);
    await call(failed('overloaded', 500));
    expect((await names()).away).toEqual([]);
  });

  test('ends at once when its key is served all the same', async () => {
    const { health, names } = world([model('a', { keys: ['k'] })]);
    const granted = await health.grant('a', '', 1);
    if (granted.type === 'granted') granted.permit.settle(failed('auth_invalid'));
    expect((await names()).away).toHaveLength(1);
    const last = await health.grant('a', '', 1);
    if (last.type === 'granted') last.permit.settle(replied);
    expect((await names()).away).toEqual([]);
  });
});
