import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { asked, begins, createdRun, createTestApi, ends, keysOf, type TestApi } from '../fixtures/test-api.ts';

const startMs = Date.parse('2024-05-01T00:00:00Z');
const hour = 3_600_000;
let api: TestApi;
let nowMs = startMs;
let minted = 0;
/** As UUIDv7: the time first. Ids of one millisecond keep their order. */
const uuid = () => {
  const hex = `${nowMs.toString(16).padStart(12, '0')}7${(minted++).toString(16).padStart(3, '0')}8${'0'.repeat(15)}`;
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
};
beforeEach(() => {
  nowMs = startMs;
  minted = 0;
  // Hundreds of runs in a store that copies all it holds at each step: what is tested is not how fast that is.
  api = createTestApi({ options: { callTimeoutMs: 60_000, requestBudgetMs: 60_000 }, deps: { random: { uuid, jitter: () => 0 }, clock: { nowMs: () => nowMs, monotonicMs: () => 0 } } });
});
afterEach(() => api.close());

async function page(query: string): Promise<{ ids: string[]; next: string | null }> {
  const answer = await api.app.inject({ url: `/v1/runs?${query}`, ...asked(keysOf.alpha) });
  if (answer.statusCode !== 200) throw new Error(answer.body);
  const body = answer.json<{ data: { id: string }[]; next_cursor: string | null }>();
  return { ids: body.data.map((run) => run.id), next: body.next_cursor };
}

async function allPages(query: string): Promise<{ ids: string[]; pages: number }> {
  const ids: string[] = [];
  let next: string | null = '';
  let pages = 0;
  while (next !== null) {
    const one: { ids: string[]; next: string | null } = await page(`${query}${next === '' ? '' : `&cursor=${next}`}`);
    ids.push(...one.ids);
    next = one.next;
    pages += 1;
  }
  return { ids, pages };
}

describe('filters', () => {
  test('by stop reason, by model and by metadata', async () => {
    const [fresh, done, running] = [await createdRun(api, { input: 'x' }), await createdRun(api, { input: 'x', metadata: { order: 7, who: 'Ada' } }), await createdRun(api, { input: 'x', metadata: { order: '7' } })];
    await api.work(done, [...begins, ...ends]);
    await api.work(running, begins);
    expect((await page('stop_reason=answered')).ids).toEqual([done]);
    expect((await page('stop_reason=max_turns')).ids).toEqual([]);
    expect((await page('model=small')).ids).toEqual([running, done]);
    expect((await page('metadata[order]=7')).ids).toEqual([running, done]);
    expect((await page('metadata[order]=7&metadata[who]=Ada')).ids).toEqual([done]);
    expect((await page('metadata[toString]=x')).ids).toEqual([]);
    expect((await page('status=queued&metadata[order]=7')).ids).toEqual([]);
    expect((await page('')).ids).toEqual([running, done, fresh]);
  });

  test('by time, both ends left out', async () => {
    const ids: string[] = [];
    for (let n = 0; n < 10; n++) {
      nowMs = startMs + n * hour;
      ids.unshift(await createdRun(api));
    }
    const at = (n: number) => new Date(startMs + n * hour).toISOString();
    expect((await page(`created_after=${at(6)}`)).ids).toEqual(ids.slice(0, 3));
    expect((await page(`created_before=${at(3)}`)).ids).toEqual(ids.slice(7));
    expect((await page(`created_after=${at(2)}&created_before=${at(5)}`)).ids).toEqual(ids.slice(5, 7));
    expect((await page(`created_after=${encodeURIComponent('2024-05-01T10:30:00+02:00')}`)).ids).toEqual(ids.slice(0, 1));
    expect(await page(`created_after=${at(50)}`)).toEqual({ ids: [], next: null });
  });

  test('give every run once over all pages, whatever the page size', async () => {
    const wanted: string[] = [];
    for (let n = 0; n < 60; n++) {
      const id = await createdRun(api, { input: 'x', metadata: { third: n % 3 === 0 } });
      if (n % 3 === 0) wanted.unshift(id);
    }
    for (const limit of [1, 7, 20, 200]) expect((await allPages(`limit=${limit}&metadata[third]=true`)).ids).toEqual(wanted);
  });

  test('look at a bounded number of runs for one answer; the cursor goes on', async () => {
    const needle = await createdRun(api, { input: 'x', metadata: { needle: true } });
    for (let n = 0; n < 210; n++) await createdRun(api);
    const first = await page('metadata[needle]=true&limit=50');
    expect(first.ids).toEqual([]);
    expect(first.next).not.toBeNull();
    expect(await allPages('metadata[needle]=true&limit=50')).toEqual({ ids: [needle], pages: 2 });
  });
});

describe('a page', () => {
  test('by status shows no run that has moved on since the index was read', async () => {
    const own = createTestApi({ store: (store) => ({
      ...store, read: async (id, without) => {
        if (id === moved && (await store.read(id))?.status === 'queued') await own.work(id, begins);
        return store.read(id, without);
      },
    }) });
    let moved = '';
    const [first, second] = [await createdRun(own), await createdRun(own)];
    moved = second;
    const answer = await own.app.inject({ url: '/v1/runs?status=queued', ...asked(keysOf.alpha) });
    expect(answer.json<{ data: { id: string; status: string }[] }>().data.map((run) => [run.id, run.status])).toEqual([[first, 'queued']]);
    await own.close();
  });

  test('ends early when its rows are large, and its cursor goes on', async () => {
    const answer = JSON.stringify('x'.repeat(3_000_000));
    const own = createTestApi({ store: (store) => ({
      ...store, read: async (id, without) => {
        const snapshot = await store.read(id, without);
        return snapshot === null ? null : { ...snapshot, stored: { ...snapshot.stored, fields: { ...snapshot.stored.fields, answer } } };
      },
    }) });
    const wanted = [];
    for (let n = 0; n < 7; n++) wanted.push(await createdRun(own));
    const pages: string[][] = [];
    for (let cursor: string | null = ''; cursor !== null;) {
      const body: { data: { id: string }[]; next_cursor: string | null } = (await own.app.inject({ url: `/v1/runs?limit=200${cursor === '' ? '' : `&cursor=${cursor}`}`, ...asked(keysOf.alpha) })).json();
      pages.push(body.data.map((run) => run.id));
      cursor = body.next_cursor;
    }
    expect([pages.map((ids) => ids.length), pages.flat().sort()]).toEqual([[3, 3, 1], wanted.sort()]);
    await own.close();
  });
});
