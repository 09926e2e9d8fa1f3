/**
 * One gap-free log out of the store and the archive, and its followers.
 */
import { idIn, type RunEvent } from '@treadle/core';
import { ArchiveConflict, archiveDue, ArchiveFailed, archiveFirst, archiveRun, createRun, LogFollowers, LogGap, readLog, replayRun, wholeLog, type ArchiveDeps, type EventFeed } from '@treadle/engine';
import { agentLimits, createMemoryArchive, createMemoryRunStore, testSpec } from '@treadle/testkit';
import { defaultLimits } from '@treadle/core';
import { describe, expect, test } from 'vitest';

let made = 0;
const options = { segment_events: 3, keep_events: 0, retention_ms: 1000 };
const clock = { nowMs: () => 1_700_000_000_000, monotonicMs: () => 0 };
const random = { uuid: () => crypto.randomUUID(), jitter: () => 0 };

function world() {
  const store = createMemoryRunStore();
  const archive = createMemoryArchive();
  const deps: ArchiveDeps = { store, archive, options };
  return { store, archive, deps };
}

/** A run with `extra` events beyond its first two, written under one claim; still running. */
async function runWith(store: ReturnType<typeof createMemoryRunStore>, extra: number) {
  const run_id = idIn('run', 0, (++made).toString(16).padStart(30, '0'));
  const run = { tenant: 't', spec: testSpec({ limits: agentLimits() }), agent_version: 'v', limits: defaultLimits, input: 'go', metadata: {}, tags: [], priority: 50, run_at: null };
  await createRun({ store, clock, random, shards: 1 }, run, { run_id, not_after_ms: Number.MAX_SAFE_INTEGER });
  const claimed = await store.claim({ run_id, n: 1, claim_id: 'c', held: null });
  if (claimed.type !== 'claimed') throw new Error(claimed.type);
  const claim = { run_id, n: 1, epoch: claimed.epoch, claim_id: 'c' };
  const append = (from: number, events: number) => store.appendMany([{
    claim, expected_seq: from, commit_id: `a${from}`, last_ts: 1, inbox_seen: 0,
    events: Array.from({ length: events }, (_, index) => JSON.stringify({ type: 'assistant_text', seq: from + index + 1, content: 'x', is_final: false, attempt: 1, ts: 1, run_id, turn_number: 0, epoch: 1 })),
  }]);
  if (extra > 0) await append(2, extra);
  return { run_id, append };
}

const seqs = (log: readonly { seq: number }[]): number[] => log.map((entry) => entry.seq);
const upTo = (last: number, first = 1): number[] => Array.from({ length: last - first + 1 }, (_, index) => first + index);

describe('reading a log', () => {
  test('goes from the archive into the store without a gap, from any place', async () => {
    const { store, archive, deps } = world();
    const { run_id, append } = await runWith(store, 8);
    await archiveRun(deps, run_id);
    await append(10, 3);
    expect((await store.events(run_id, 0, 100))?.first_seq).toBe(11);
    for (let after = 0; after <= 13; after++) {
      const seen: number[] = [];
      for (let at = after; ;) {
        const page = await readLog({ store, archive }, run_id, { after_seq: at, limit: 4 });
        if (page.length === 0) break;
        seen.push(...seqs(page));
        at = page.at(-1)!.seq;
      }
      expect(seen).toEqual(upTo(13, after + 1));
    }
  });

  test('says loudly when an event is in neither place', async () => {
    const { store, archive, deps } = world();
    const { run_id, append } = await runWith(store, 8);
    await archiveRun(deps, run_id);
    await append(10, 1);
    archive.objects.clear();
    await expect(readLog({ store, archive }, run_id, { after_seq: 2, limit: 10 })).rejects.toBeInstanceOf(LogGap);
  });

  test('of a run that the store has forgotten is answered by the archive alone', async () => {
    const { store, archive, deps } = world();
    const { run_id } = await runWith(store, 5);
    await archiveRun(deps, run_id);
    const log = [];
    for await (const entry of wholeLog({ store: createMemoryRunStore(), archive }, run_id)) log.push(entry);
    expect(seqs(log)).toEqual(upTo(7));
  });
});

describe('archiving', () => {
  test('a segment whose answer was lost is put again as the same bytes', async () => {
    const { store, archive, deps } = world();
    const { run_id, append } = await runWith(store, 2);
    archive.dropAnswer(1);
    await expect(archiveRun(deps, run_id)).rejects.toThrow();
    await append(4, 2);
    expect(await archiveRun(deps, run_id)).toBe(6);
    expect([...archive.objects.keys()].filter((key) => key.includes('events')).length).toBe(2);
    expect((await store.read(run_id))?.archived_seq).toBe(6);
  });

  test('after a failure no further run is begun in the same round, and the next round does them all', async () => {
    const { store, archive, deps } = world();
    const runs = [];
    for (let each = 0; each < 5; each++) runs.push((await runWith(store, 1)).run_id);
    store.passTime(10_000);
    archive.failNext(1);
    await expect(archiveDue(deps, 0, { limit: 10, concurrency: 1, retry_ms: 1000 })).rejects.toThrow();
    for (const run_id of runs) expect((await store.read(run_id))?.archived_seq).toBe(0);
    store.passTime(1000);
    expect(await archiveDue(deps, 0, { limit: 10, concurrency: 3, retry_ms: 1000 })).toBe(5);
    for (const run_id of runs) expect((await store.read(run_id))?.archived_seq).toBe(3);
  });

  test('replay folds archived and live events together', async () => {
    const { store, archive, deps } = world();
    const { run_id, append } = await runWith(store, 4);
    await archiveRun(deps, run_id);
    await append(6, 2);
    expect(await replayRun({ store, archive }, run_id)).toMatchObject({ identical: true, events: 8 });
  });
});

describe('what else is due in the archive', () => {
  const round = { limit: 10, concurrency: 2, retry_ms: 1000 };
  const keysOf = (archive: ReturnType<typeof createMemoryArchive>, run_id: string): string[] => [...archive.objects.keys()].filter((key) => key.includes(run_id)).sort();

  /** A run that has ended, archived up to its last events. */
  async function endedRun(w: ReturnType<typeof world>, extra: number) {
    const { run_id, append } = await runWith(w.store, extra);
    const end = { type: 'run_end', seq: extra + 3, status: 'cancelled', stop_reason: 'interrupted', ts: 1, run_id, turn_number: 0, epoch: 1 } satisfies RunEvent;
    await w.store.commit({ claim: { run_id, n: 1, epoch: 1, claim_id: 'c' }, expected_seq: extra + 2, commit_id: 'e', status: 'cancelled', events: [JSON.stringify(end)], last_ts: 1,
      changes: { fields: {}, generation: 1, replaces: false, messages: [] }, ledger: [], open_calls: [], pending: [], inbox_seen: 0, applies_inbox: false, next: { type: 'end' } });
    return { run_id, append };
  }

  test('the segments of an ended run become one', async () => {
    const w = world();
    const { run_id } = await endedRun(w, 6);
    expect(await archiveDue(w.deps, 0, round)).toBe(1);
    expect(keysOf(w.archive, run_id).filter((key) => key.includes('/events/'))).toEqual([`runs/${run_id}/events/000000000001-000000000009.jsonl`]);
    expect(await w.store.dueForArchive(0, round)).toEqual([]);
  });

  test('a merge that failed is due again, though the log was archived', async () => {
    const w = world();
    const { run_id } = await endedRun(w, 6);
    let fails = true;
    const archive = { ...w.archive, merge: (id: string) => (fails ? Promise.reject(new Error('away')) : w.archive.merge(id)) };
    await expect(archiveDue({ ...w.deps, archive }, 0, round)).rejects.toThrow('away');
    expect((await w.store.read(run_id))?.archived_seq).toBe(9);
    expect(keysOf(w.archive, run_id).filter((key) => key.includes('/events/'))).toHaveLength(3);
    fails = false;
    w.store.passTime(1000);
    await archiveDue({ ...w.deps, archive }, 0, round);
    expect(keysOf(w.archive, run_id).filter((key) => key.includes('/events/'))).toHaveLength(1);
  });

  const archivers = { 'the archiver': archiveRun, 'a worker that archives before it goes on': (deps: ArchiveDeps, run_id: string) => archiveFirst(deps, (error) => { expect.unreachable(String(error)); })(run_id, 3) };
  test.each(Object.entries(archivers))('a part that comes late from %s, behind the merge of somebody who was quicker, does not stay', async (_, archive) => {
    const w = world();
    const { run_id } = await endedRun(w, 6);
    let others: Promise<unknown> | null = null;
    const slow = { ...w.archive, putSegment: async (segment: Parameters<typeof w.archive.putSegment>[0]) => {
      // The first one hangs until another worker has done everything.
      await (others ??= archiveRun(w.deps, run_id));
      await w.archive.putSegment(segment);
    } };
    await archive({ ...w.deps, archive: slow }, run_id);
    expect(keysOf(w.archive, run_id).filter((key) => key.includes('/events/'))).toEqual([`runs/${run_id}/events/000000000001-000000000009.jsonl`]);
  });

  test('who was overtaken at one part goes on with the next ones', async () => {
    const w = world();
    const { run_id } = await endedRun(w, 6);
    let puts = 0;
    const slow = { ...w.archive, putSegment: async (segment: Parameters<typeof w.archive.putSegment>[0]) => {
      if (++puts === 1) await w.store.archived((await w.store.seal(run_id, options.segment_events))!, options);
      if (puts > 9) throw new Error('the same part again and again');
      await w.archive.putSegment(segment);
    } };
    await archiveRun({ ...w.deps, archive: slow }, run_id);
    expect([puts, (await w.store.read(run_id))?.archived_seq]).toEqual([3, 9]);
  });

  test('what the archive refuses for one run holds back nobody else', async () => {
    const w = world();
    const refused = await endedRun(w, 6);
    const good = await endedRun(w, 6);
    const archive = { ...w.archive, merge: (id: string) => (id === refused.run_id ? Promise.reject(new ArchiveFailed('refused', '403')) : w.archive.merge(id)) };
    await expect(archiveDue({ ...w.deps, archive }, 0, { ...round, concurrency: 1 })).rejects.toThrow('403');
    expect(keysOf(w.archive, good.run_id).filter((key) => key.includes('/events/'))).toHaveLength(1);
  });

  test('a deleted run is removed, and once more when late writes have come to rest', async () => {
    const w = world();
    const { run_id } = await endedRun(w, 6);
    await archiveRun(w.deps, run_id);
    await w.archive.putBlob(run_id, Buffer.from('beside'));
    await w.store.remove({ run_id, tenant: 't', not_after_ms: Number.MAX_SAFE_INTEGER });
    await archiveDue(w.deps, 0, round);
    expect(keysOf(w.archive, run_id)).toEqual([`deleted/${run_id}.json`]);
    // A worker that was frozen in the middle of a put.
    await w.archive.putSegment({ run_id, first_seq: 1, last_seq: 1, events: [JSON.stringify({ type: 'assistant_text', seq: 1, content: 'x', is_final: false, attempt: 1, ts: 1, run_id, turn_number: 0, epoch: 1 })] });
    w.store.passTime(121_000);
    await archiveDue(w.deps, 0, round);
    expect(keysOf(w.archive, run_id)).toEqual([`deleted/${run_id}.json`]);
    w.store.passTime(1_000_000);
    expect(await w.store.dueForArchive(0, round)).toEqual([]);
  });

  test('a run that is deleted while its events are on their way leaves nothing', async () => {
    const w = world();
    const { run_id } = await endedRun(w, 6);
    const archive = { ...w.archive, putSegment: async (segment: Parameters<typeof w.archive.putSegment>[0]) => {
      await w.store.remove({ run_id, tenant: 't', not_after_ms: Number.MAX_SAFE_INTEGER });
      await w.archive.putSegment(segment);
    } };
    await archiveDue({ ...w.deps, archive }, 0, round);
    expect(keysOf(w.archive, run_id)).toEqual([`deleted/${run_id}.json`]);
  });

  test('a run that only the archive knows to be deleted does not come back', async () => {
    const w = world();
    const { run_id } = await endedRun(w, 2);
    await w.archive.remove({ run_id, tenant: 't', deleted_at: '2030-01-01T00:00:00.000Z' });
    await archiveDue(w.deps, 0, round);
    expect(keysOf(w.archive, run_id)).toEqual([`deleted/${run_id}.json`]);
    expect([await w.store.read(run_id), await w.store.removed(run_id)]).toEqual([null, { tenant: 't', deleted_at_ms: expect.any(Number) as number }]);
  });
});

describe('archiving beside runs that go on', () => {
  test('a run that keeps appending does not hold the archiver', async () => {
    const { store, archive, deps } = world();
    const { run_id, append } = await runWith(store, 1);
    let last = 3;
    const busy = { ...deps, archive: { ...archive, putSegment: async (segment: Parameters<typeof archive.putSegment>[0]) => {
      await archive.putSegment(segment);
      await append(last, 1);
      last++;
    } } };
    expect(await archiveRun({ ...busy, options: { ...options, segment_events: 50 } }, run_id)).toBe(3);
  });

  test('a run with a fault of its own holds back nobody else', async () => {
    const { store, archive, deps } = world();
    const bad = await runWith(store, 1);
    const good = await runWith(store, 1);
    const broken = { ...deps, archive: { ...archive, putSegment: (segment: Parameters<typeof archive.putSegment>[0]) => (segment.run_id === bad.run_id ? Promise.reject(new ArchiveConflict('x')) : archive.putSegment(segment)) } };
    store.passTime(10_000);
    await expect(archiveDue(broken, 0, { limit: 10, concurrency: 1, retry_ms: 1000 })).rejects.toBeInstanceOf(ArchiveConflict);
    expect((await store.read(good.run_id))?.archived_seq).toBe(3);
  });
});

describe('following a log', () => {
  /** A feed that a test feeds. */
  function handFeed() {
    let handlers: Parameters<EventFeed['follow']>[0] | null = null;
    const feed: EventFeed = { follow: (given, signal) => new Promise((resolve) => { handlers = given; signal.addEventListener('abort', () => { resolve(); }); }) };
    return { feed, notice: (run_id: string) => handlers?.onNotice({ run_id, last_seq: 0 }), gap: () => handlers?.onGap() };
  }

  test.each(['notice', 'gap', 'nothing at all'] as const)('finds new events after %s', async (how) => {
    const { store, archive } = world();
    const followers = new LogFollowers({ store, archive }, { maxSilenceMs: how === 'nothing at all' ? 20 : 60_000 });
    const { feed, notice, gap } = handFeed();
    const stop = new AbortController();
    const listening = followers.listen(feed, stop.signal);
    const { run_id, append } = await runWith(store, 0);
    const pages = followers.follow(run_id, { after_seq: 0, signal: stop.signal });
    expect(seqs((await pages.next()).value ?? [])).toEqual([1, 2]);
    const next = pages.next();
    await append(2, 2);
    if (how === 'notice') notice(run_id);
    if (how === 'gap') gap();
    expect(seqs((await next).value ?? [])).toEqual([3, 4]);
    const last = pages.next();
    stop.abort();
    expect((await last).done).toBe(true);
    await listening;
    expect(followers.size).toBe(0);
  });

  test('ends after run_end', async () => {
    const { store, archive } = world();
    const { run_id } = await runWith(store, 0);
    const end = { type: 'run_end', seq: 3, status: 'cancelled', stop_reason: 'interrupted', ts: 1, run_id, turn_number: 0, epoch: 1 } satisfies RunEvent;
    await store.appendMany([{ claim: { run_id, n: 1, epoch: 1, claim_id: 'c' }, expected_seq: 2, commit_id: 'e', last_ts: 1, inbox_seen: 0, events: [JSON.stringify(end)] }]);
    const seen: number[] = [];
    for await (const page of new LogFollowers({ store, archive }).follow(run_id, { after_seq: 0, signal: new AbortController().signal })) seen.push(...seqs(page));
    expect(seen).toEqual([1, 2, 3]);
  });
});
