/** What every `ScheduleStore` promises (C1 to C5), through the port alone: the double and Redis are held to it. */
import { randomUUID } from 'node:crypto';
import { idIn } from '@treadle/core';
import type { NewSchedule, ScheduleChange, ScheduleDefinition, ScheduleStore } from '@treadle/engine';
import { beforeEach, describe, expect, test } from 'vitest';

export interface ScheduleStoreUnderTest {
  readonly store: ScheduleStore;
  /** The store's clock. */
  now(): Promise<number>;
  /** Lets it run on; a real store really waits. */
  passTime(ms: number): Promise<void>;
}

let made = 0;

/** Sorts after every id made before it. */
export function newScheduleId(shard = 0): string {
  return idIn('sch', shard, `${Date.now().toString(16).padStart(12, '0')}${(++made).toString(16).padStart(8, '0')}${randomUUID().slice(0, 8)}0000`);
}

export const someDefinition: ScheduleDefinition = {
  name: 'grüße', cron: '0 9 * * *', timezone: 'Europe/Berlin', catch_up_s: 3600,
  run: { agent: 'assistant', input: 'report', limits: { max_turns: 3 }, metadata: { a: [1, null] }, tags: ['x'], priority: 50, session_id: null, on_busy: 'reject', chain: null, webhook: null },
};

export function scheduleStoreConformance(name: string, factory: () => ScheduleStoreUnderTest | Promise<ScheduleStoreUnderTest>): void {
  describe(`schedule store: ${name}`, () => {
    let under: ScheduleStoreUnderTest;
    beforeEach(async () => { under = await factory(); });
    const store = (): ScheduleStore => under.store;
    const later = async (): Promise<number> => await under.now() + 60_000;
    const everyone = { limit: 100, retry_ms: 60_000 };

    async function create(fields: Partial<NewSchedule> = {}): Promise<string> {
      const schedule = { id: newScheduleId(), tenant: 'acme', definition: someDefinition, paused: false, next_ms: await under.now() + 3_600_000, ...fields };
      expect(await store().create({ ...schedule, not_after_ms: await later(), most: 100 })).toBe('created');
      return schedule.id;
    }

    async function change(id: string, fields: Partial<ScheduleChange>) {
      return store().change({ id, tenant: 'acme', change_id: randomUUID(), version: 1, definition: someDefinition, paused: false, next_ms: 'as_it_is', not_after_ms: await later(), ...fields });
    }

    const due = async (): Promise<readonly string[]> => (await store().due(0, everyone)).ids;
    const forArchive = (): Promise<readonly string[]> => store().dueForArchive(0, everyone);

    test('gives back what it was given; asked again it changes nothing', async () => {
      const next_ms = await under.now() + 1000;
      const id = await create({ next_ms });
      expect(await store().schedule(id)).toEqual({
        id, tenant: 'acme', definition: someDefinition, paused: false, created_at_ms: expect.any(Number) as number, version: 1, next_ms, last: null, fired: 0, skipped: 0, failed: 0, last_error: null,
      });
      expect(await store().create({ id, tenant: 'other', definition: { ...someDefinition, name: null }, paused: true, next_ms: null, not_after_ms: await later(), most: 100 })).toBe('exists');
      expect(await store().schedule(id)).toMatchObject({ tenant: 'acme', definition: someDefinition, paused: false });
      expect(await store().schedule(newScheduleId())).toBeNull();
    });

    test('nothing happens after its time, nor beyond what a tenant may have', async () => {
      const id = newScheduleId();
      const schedule = { id, tenant: 'acme', definition: someDefinition, paused: false, next_ms: null };
      const past = await under.now() - 1;
      expect(await store().create({ ...schedule, not_after_ms: past, most: 100 })).toBe('too_late');
      const own = await create();
      expect(await store().create({ ...schedule, not_after_ms: await later(), most: 1 })).toBe('too_many');
      expect(await store().create({ ...schedule, tenant: 'other', not_after_ms: await later(), most: 1 })).toBe('created');
      expect(await change(own, { not_after_ms: past, paused: true })).toBe('too_late');
      expect(await store().remove({ id: own, tenant: 'acme', not_after_ms: past })).toEqual({ type: 'too_late' });
      expect(await store().schedule(own)).toMatchObject({ paused: false, version: 1 });
    });

    test('what is due is handed out by the store’s clock, once, and again when nobody has moved it on', async () => {
      const now = await under.now();
      const id = await create({ next_ms: now - 5 });
      await create({ next_ms: now + 60_000 });
      await create({ next_ms: now - 5, paused: true });
      const first = await store().due(0, { limit: 100, retry_ms: 500 });
      expect(first.ids).toEqual([id]);
      expect(first.now_ms).toBeGreaterThanOrEqual(now);
      expect(await due()).toEqual([]);
      await under.passTime(520);
      expect(await due()).toEqual([id]);
    });

    test('what is left to another is due again at once, and only where it still stands at that time', async () => {
      const next_ms = await under.now() - 5;
      const [id, paused] = [await create({ next_ms }), await create({ next_ms, paused: true })];
      expect(await due()).toEqual([id]);
      await store().leave(id, next_ms - 1);
      expect(await due()).toEqual([]);
      for (const each of [id, paused, newScheduleId()]) await store().leave(each, next_ms);
      expect(await due()).toEqual([id]);
    });

    test('is moved on once from a time, whoever asks and how often; paused or removed meanwhile, it stays so', async () => {
      const from_ms = await under.now() - 5;
      const [id, paused, gone] = [await create({ next_ms: from_ms }), await create({ next_ms: from_ms }), await create({ next_ms: from_ms })];
      await change(paused, { paused: true });
      await store().remove({ id: gone, tenant: 'acme', not_after_ms: await later() });
      const fired = { from_ms, next_ms: from_ms + 60_000, skipped: 2, outcome: { type: 'fired', due_ms: from_ms, run_id: 'run_a' } as const };
      expect(await Promise.all([1, 2, 3].map(() => store().advance({ ...fired, id })))).toEqual(['advanced', 'moved', 'moved']);
      expect(await store().schedule(id)).toMatchObject({ next_ms: from_ms + 60_000, last: { due_ms: from_ms, run_id: 'run_a' }, fired: 1, skipped: 2, failed: 0, version: 1 });
      expect([await store().advance({ ...fired, id: paused }), await store().advance({ ...fired, id: gone }), await store().advance({ ...fired, id: newScheduleId() })]).toEqual(['advanced', 'moved', 'moved']);
      expect(await store().schedule(paused)).toMatchObject({ paused: true, next_ms: from_ms + 60_000 });
      expect(await due()).toEqual([]);
    });

    test('keeps why a time made no run, until one makes one; a schedule without a next time rests', async () => {
      const id = await create({ next_ms: 1000 });
      const error = { due_ms: 1000, code: 'session_busy', message: 'busy' };
      await store().advance({ id, from_ms: 1000, next_ms: 2000, skipped: 0, outcome: { type: 'failed', error } });
      await store().advance({ id, from_ms: 2000, next_ms: 3000, skipped: 1, outcome: { type: 'skipped' } });
      expect(await store().schedule(id)).toMatchObject({ last: null, last_error: error, failed: 1, skipped: 1, next_ms: 3000 });
      await store().advance({ id, from_ms: 3000, next_ms: null, skipped: 0, outcome: { type: 'fired', due_ms: 3000, run_id: 'run_b' } });
      expect(await store().schedule(id)).toMatchObject({ last_error: null, fired: 1, next_ms: null });
      expect(await due()).toEqual([]);
    });

    test('changes are made from the version that was seen, once; another tenant’s are not there', async () => {
      const id = await create({ next_ms: 1000 });
      const pause = { change_id: 'p', version: 1, paused: true };
      expect([await change(id, pause), await change(id, pause), await change(id, { version: 1 })]).toEqual(['changed', 'changed', 'conflict']);
      expect(await store().schedule(id)).toMatchObject({ paused: true, version: 2, next_ms: 1000 });
      expect(await due()).toEqual([]);
      expect(await change(id, { version: 2, paused: false })).toBe('changed');
      expect(await due()).toEqual([id]);
      const other = { ...someDefinition, cron: '* * * * *' };
      expect(await change(id, { version: 3, definition: other, next_ms: await later() })).toBe('changed');
      expect(await due()).toEqual([]);
      expect(await store().schedule(id)).toMatchObject({ definition: other, version: 4 });
      expect([await change(id, { tenant: 'other', version: 4 }), await change(newScheduleId(), {})]).toEqual(['missing', 'missing']);
    });

    test('a removed one is gone, is known as removed, and comes back by no creation and no restoring', async () => {
      const id = await create({ next_ms: 1000 });
      const stored = await store().schedule(id);
      expect(await store().remove({ id, tenant: 'other', not_after_ms: await later() })).toEqual({ type: 'missing' });
      const removal = await store().remove({ id, tenant: 'acme', not_after_ms: await later() });
      expect(removal).toMatchObject({ type: 'removed' });
      expect(await store().remove({ id, tenant: 'acme', not_after_ms: 0 })).toEqual(removal);
      expect([await store().schedule(id), await due(), (await store().list({ tenant: 'acme', before_id: null, limit: 9 })).ids]).toEqual([null, [], []]);
      expect(await store().create({ id, tenant: 'acme', definition: someDefinition, paused: false, next_ms: 1, not_after_ms: await later(), most: 100 })).toBe('removed');
      expect(await store().restore(stored!)).toBe('exists');
      expect(await change(id, { version: 2 })).toBe('missing');
      expect(await store().remove({ id: newScheduleId(), tenant: 'acme', not_after_ms: await later() })).toEqual({ type: 'missing' });
    });

    test('are listed newest first, page by page, each tenant’s own', async () => {
      const ids = [await create(), await create(), await create()].reverse();
      await create({ tenant: 'other' });
      const first = await store().list({ tenant: 'acme', before_id: null, limit: 2 });
      expect(first).toEqual({ ids: ids.slice(0, 2), next_before_id: ids[1] });
      expect(await store().list({ tenant: 'acme', before_id: first.next_before_id, limit: 2 })).toEqual({ ids: ids.slice(2), next_before_id: null });
    });

    test('what was changed is due for the archive until that very version is there', async () => {
      const id = await create();
      expect([await forArchive(), await forArchive()]).toEqual([[id], []]);
      expect(await store().duty(id)).toMatchObject({ type: 'put', schedule: { id, version: 1 } });
      await change(id, { paused: true });
      await store().archived(id, 1);
      expect(await forArchive()).toEqual([id]);
      await store().archived(id, 2);
      await store().advance({ id, from_ms: (await store().schedule(id))!.next_ms!, next_ms: null, skipped: 0, outcome: { type: 'skipped' } });
      expect(await forArchive()).toEqual([]);
      await store().remove({ id, tenant: 'acme', not_after_ms: await later() });
      expect(await forArchive()).toEqual([id]);
      expect(await store().duty(id)).toMatchObject({ type: 'remove', id, tenant: 'acme', version: 3, removed_at_ms: expect.any(Number) as number });
      await store().archived(id, 3);
      expect([await forArchive(), await store().duty(newScheduleId())]).toEqual([[], null]);
    });

    test('is put back as the archive has it, and not over one that is there', async () => {
      const id = newScheduleId();
      const archived = { id, tenant: 'acme', definition: someDefinition, paused: false, created_at_ms: 1_700_000_000_000, version: 7, next_ms: 1000, last: null, fired: 0, skipped: 0, failed: 0, last_error: null };
      expect([await store().restore(archived), await store().restore({ ...archived, paused: true })]).toEqual(['restored', 'exists']);
      expect(await store().schedule(id)).toEqual(archived);
      expect([await due(), await forArchive(), (await store().list({ tenant: 'acme', before_id: null, limit: 9 })).ids]).toEqual([[id], [], [id]]);
    });
  });
}
