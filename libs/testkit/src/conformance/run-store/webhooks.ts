/** W1 to W5: the outbox. */
import type { NewDelivery, StoredDelivery, TakeDeliveries, TakenDelivery } from '@treadle/engine';
import { expect, test } from 'vitest';
import type { Driver } from './driver.ts';

const url = (host: string): Pick<NewDelivery, 'target' | 'lane'> => ({ target: { url: `https://${host}/hook?token=x` }, lane: `https://${host}` });
const told = (over: Partial<NewDelivery> = {}): NewDelivery => ({ tenant: 'acme', body: '{"type":"run.completed","text":"grüße 🧵"}', ...url('a.example'), ...over });
const all: TakeDeliveries = { limit: 10, per_tenant: 10, per_lane: 10, busy: {}, lease_ms: 60_000 };

export function webhookTests(it: () => Driver): void {
  const ended = async (delivery: NewDelivery | null = told()): Promise<string> => {
    const { run_id } = await it().after({ type: 'end' }, 'completed');
    await it().store.finished(run_id, null, delivery);
    return run_id;
  };
  const take = (over: Partial<TakeDeliveries> = {}): Promise<readonly TakenDelivery[]> => it().store.takeDeliveries(0, { ...all, ...over });
  const idsOf = (taken: readonly { readonly run_id: string }[]): string[] => taken.map(({ run_id }) => run_id);
  const one = async (over: Partial<TakeDeliveries> = {}): Promise<TakenDelivery> => {
    const taken = await take(over);
    expect(taken).toHaveLength(1);
    return taken[0]!;
  };
  const shown = (run_id: string, tenant = 'acme'): Promise<StoredDelivery | null> => it().store.delivery(run_id, tenant);
  const pending = async (): Promise<number> => (await it().store.activeRuns(0)).webhooks;
  const again = async (run_id: string, request_id: string, over: { tenant?: string; not_after_ms?: number } = {}) =>
    it().store.redeliver({ run_id, tenant: 'acme', request_id, not_after_ms: await it().later(), ...over });

  test('a delivery is written by the finish that brings it, once, and by none of a run that is not there, has not ended or was deleted', async () => {
    const run_id = await ended();
    await it().store.finished(run_id, null, told({ body: 'another' }));
    expect(await take()).toEqual([{ run_id, taken: 1, tries: 0, ...told() }]);
    const running = await it().create();
    await it().store.finished(running, null, told());
    await it().store.finished('run_0193f0c0a0007000800000000000aa00', null, told());
    const deleted = await ended(null);
    await it().store.remove({ run_id: deleted, tenant: 'acme', not_after_ms: await it().later() });
    await it().store.finished(deleted, null, told());
    expect(await take()).toEqual([]);
    expect([await shown(running), await shown(deleted), await pending()]).toEqual([null, null, 1]);
  });

  test('what was handed out is hidden for its lease, and handed out again behind it; the older taking settles nothing', async () => {
    const run_id = await ended();
    const first = await one({ lease_ms: 500 });
    expect(await take()).toEqual([]);
    await it().under.passTime(520);
    const second = await one();
    expect([second.run_id, second.taken, second.tries, second.body]).toEqual([run_id, first.taken + 1, 0, first.body]);
    expect(await it().store.settleDelivery(first, { type: 'dead', status: 410, error: 'gone' })).toBe('stale');
    expect(await shown(run_id)).toMatchObject({ state: 'pending', attempts: 0, last_attempt_ms: null });
    expect(await it().store.settleDelivery(second, { type: 'delivered', status: 204 })).toBe('settled');
    expect(await shown(run_id)).toMatchObject({ state: 'delivered', attempts: 1, last_status: 204, last_error: null, next_attempt_ms: null, target: told().target });
    expect(await pending()).toBe(0);
  });

  test('an attempt that failed is due again after its delay, once, however often that is said; one that was put off was none', async () => {
    const run_id = await ended();
    const first = await one();
    const failed = { type: 'retry', delay_ms: 500, status: null, error: 'no connection' } as const;
    expect([await it().store.settleDelivery(first, failed), await it().store.settleDelivery(first, failed)]).toEqual(['settled', 'settled']);
    expect(await shown(run_id)).toMatchObject({ state: 'pending', attempts: 1, last_status: null, last_error: 'no connection' });
    expect(await take()).toEqual([]);
    await it().under.passTime(520);
    const second = await one();
    expect(second.tries).toBe(1);
    await it().store.settleDelivery(second, { type: 'later', delay_ms: 0 });
    const third = await one();
    expect([third.tries, (await shown(run_id))?.attempts, await pending()]).toEqual([1, 1, 1]);
  });

  test('one that has ended is sent again when it is asked for, once per request, and with its schedule from the beginning', async () => {
    const run_id = await ended();
    expect(await again(run_id, 'early')).toBe('pending');
    await it().store.settleDelivery(await one(), { type: 'dead', status: 500, error: 'the receiver answered 500' });
    expect(await take()).toEqual([]);
    expect([await again(run_id, 'x', { tenant: 'other' }), await again('run_0193f0c0a0007000800000000000aa00', 'x'), await again(run_id, 'x', { not_after_ms: await it().store.now() - 1 })]).toEqual(['missing', 'missing', 'too_late']);
    expect(await shown(run_id)).toMatchObject({ state: 'dead' });
    expect([await again(run_id, 'x'), await again(run_id, 'x'), await again(run_id, 'y')]).toEqual(['due', 'due', 'pending']);
    expect(await pending()).toBe(1);
    const resent = await one();
    expect([resent.tries, resent.body]).toEqual([0, told().body]);
    await it().store.settleDelivery(resent, { type: 'delivered', status: 200 });
    expect(await shown(run_id)).toMatchObject({ state: 'delivered', attempts: 2 });
    expect([await again(run_id, 'x'), await again(run_id, 'z')]).toEqual(['due', 'due']);
    expect((await one()).run_id).toBe(run_id);
  });

  test('one that waits for its next attempt need not wait where somebody asks for it; one that is under way is left alone', async () => {
    const run_id = await ended();
    const first = await one();
    expect(await again(run_id, 'x')).toBe('pending');
    await it().store.settleDelivery(first, { type: 'retry', delay_ms: 3_600_000, status: 503, error: 'the receiver answered 503' });
    expect(await take()).toEqual([]);
    expect([await again(run_id, 'x', { tenant: 'other' }), await again(run_id, 'x'), await again(run_id, 'x'), await again(run_id, 'y')]).toEqual(['missing', 'due', 'due', 'pending']);
    const second = await one();
    expect([second.run_id, second.taken, second.tries]).toEqual([run_id, first.taken + 1, 0]);
    expect(await again(run_id, 'z')).toBe('pending');
    expect([await pending(), (await shown(run_id))?.attempts]).toEqual([1, 1]);
    await it().store.settleDelivery(second, { type: 'delivered', status: 200 });
    expect(await pending()).toBe(0);
  });

  test('lanes do not wait for each other, and each gets as many as there is room for', async () => {
    const slow = [];
    for (let n = 0; n < 5; n++) slow.push(await ended());
    const others = [await ended(told(url('b.example'))), await ended(told(url('c.example')))];
    const lane = 'https://a.example';
    expect(idsOf(await take({ limit: 4, per_lane: 2 })).sort()).toEqual([...slow.slice(0, 2), ...others].sort());
    expect(await take({ per_lane: 2, busy: { acme: { [lane]: 2 } } })).toEqual([]);
    expect(idsOf(await take({ per_lane: 2, busy: { acme: { [lane]: 1 } } }))).toEqual(slow.slice(2, 3));
    expect(idsOf(await take())).toEqual(slow.slice(3));
    expect(await pending()).toBe(7);
  });

  test('a lane that was served goes behind those that wait, whatever became of what it was handed', async () => {
    const many = [];
    for (let n = 0; n < 3; n++) many.push(await ended());
    const other = await ended(told(url('b.example')));
    const next = async (): Promise<TakenDelivery> => {
      // So that no two of these moments are one.
      await it().under.passTime(2);
      return one({ limit: 1 });
    };
    const first = await next();
    expect(first.run_id).toBe(many[0]);
    await it().store.settleDelivery(first, { type: 'retry', delay_ms: 60_000, status: 500, error: 'the receiver answered 500' });
    expect((await next()).run_id).toBe(other);

    const late = [await ended(told(url('c.example'))), await ended(told(url('d.example')))];
    for (const expected of [many[1], ...late, many[2]]) {
      const handed = await next();
      expect(handed.run_id).toBe(expected);
      await it().store.settleDelivery(handed, { type: 'delivered', status: 200 });
      // What is new waits in its lane, and moves it neither way.
      await ended();
    }
  });

  test('a tenant with many receivers stands in front of no other, and has no more under way than his share', async () => {
    const many = [];
    for (let n = 0; n < 6; n++) many.push(await ended(told(url(`a${n}.example`))));
    const other = await ended(told({ tenant: 'other', ...url('a0.example') }));
    const share = { limit: 4, per_tenant: 3, per_lane: 1 };
    expect(idsOf(await take({ ...share, limit: 1, busy: { acme: { x: 2, y: 1 } } }))).toEqual([other]);
    expect(idsOf(await take({ ...share, busy: { acme: { x: 1 } } })).sort()).toEqual(many.slice(0, 2));
    const late = await ended(told({ tenant: 'other', ...url('a0.example') }));
    // Nor by what is new: who was served a moment ago stands behind.
    await it().under.passTime(5);
    await ended(told(url('b.example')));
    expect(idsOf(await take({ ...share, limit: 1, busy: { acme: { x: 2, y: 1 }, other: {} } }))).toEqual([late]);
    expect(idsOf(await take({ ...share, limit: 9, per_tenant: 9 }))).toHaveLength(5);
  });

  test('a tenant sees his own, newest first, page by page, and by state', async () => {
    const mine = [];
    for (let n = 0; n < 5; n++) mine.unshift(await ended());
    await ended(told({ tenant: 'other' }));
    const [first] = await take({ limit: 1 });
    await it().store.settleDelivery(first!, { type: 'dead', status: null, error: 'no connection' });
    const list = (over: object = {}) => it().store.deliveries({ tenant: 'acme', state: null, before_id: null, limit: 3, ...over });
    const page = await list();
    expect([idsOf(page.deliveries), page.next_before_id]).toEqual([mine.slice(0, 3), mine[2]]);
    expect(await list({ before_id: page.next_before_id })).toMatchObject({ deliveries: mine.slice(3).map((run_id) => ({ run_id })), next_before_id: null });
    expect(idsOf((await list({ state: 'dead' })).deliveries)).toEqual([first!.run_id]);
    expect((await list({ state: 'delivered' })).deliveries).toEqual([]);
    expect((await it().store.deliveries({ tenant: 'other', state: null, before_id: null, limit: 9 })).deliveries).toHaveLength(1);
    expect([await shown(mine[0]!, 'other'), (await it().store.deliveries({ tenant: 'nobody', state: null, before_id: null, limit: 9 })).deliveries]).toEqual([null, []]);
  });

  test('what a lost store had of it can be put back, once', async () => {
    const [run_id, known] = ['run_0193f0c0a0007000800000000000aa00', await ended()];
    expect([await it().store.restoreDelivery(run_id, told()), await it().store.restoreDelivery(run_id, told({ body: 'another' })), await it().store.restoreDelivery(known, told({ body: 'another' }))]).toEqual(['restored', 'exists', 'exists']);
    expect((await take()).map((each) => [each.run_id, each.body]).sort()).toEqual([[run_id, told().body], [known, told().body]].sort());
    expect(await pending()).toBe(2);
  });

  test('with its run it is gone, whether it was sent or not', async () => {
    const remove = async (run_id: string) => it().store.remove({ run_id, tenant: 'acme', not_after_ms: await it().later() });
    const [waiting, dead] = [await ended(), await ended()];
    const taken = await take();
    await it().store.settleDelivery(taken.find(({ run_id }) => run_id === dead)!, { type: 'dead', status: 410, error: 'gone' });
    await remove(waiting);
    await remove(dead);
    expect([await shown(waiting), await shown(dead), await pending(), await again(dead, 'x')]).toEqual([null, null, 0, 'missing']);
    expect(await it().store.settleDelivery(taken.find(({ run_id }) => run_id === waiting)!, { type: 'delivered', status: 200 })).toBe('stale');
    expect((await it().store.deliveries({ tenant: 'acme', state: null, before_id: null, limit: 9 })).deliveries).toEqual([]);
  });
}
