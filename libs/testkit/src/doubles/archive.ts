/**
 * The archive in memory. It keeps the port's promises as the real one does, and is strict: ranges and events that do not fit
 * together are refused, since a test that archives nonsense tests nothing.
 */
import { createHash } from 'node:crypto';
import { decodeEvent, isId } from '@treadle/core';
import { ArchiveConflict, type Archive, type Removal, type Segment } from '@treadle/engine';

export interface MemoryArchive extends Archive {
  /** Everything that is stored, by the keys of the real layout. */
  readonly objects: Map<string, string | Uint8Array>;
  /** The next `n` calls throw and change nothing. */
  failNext(n: number): void;
  /** The next `n` writes happen and then throw: the answer was lost. */
  dropAnswer(n: number): void;
}

export function createMemoryArchive(): MemoryArchive {
  const objects = new Map<string, string | Uint8Array>();
  let failures = 0;
  let drops = 0;

  function begin(): void {
    if (failures === 0) return;
    failures -= 1;
    throw new Error('the archive is away (planned)');
  }

  function store(key: string, value: string | Uint8Array): void {
    objects.set(key, value);
    if (drops === 0) return;
    drops -= 1;
    throw new Error('the answer of the archive was lost (planned)');
  }

  return {
    objects,
    failNext(n) { failures = n; },
    dropAnswer(n) { drops = n; },

    async putSegment(segment) {
      begin();
      const key = segmentKey(segment);
      const text = segmentText(segment);
      const present = objects.get(key);
      if (present !== undefined && present !== text) throw new ArchiveConflict(key);
      store(key, text);
    },

    async putRun({ run_id, tenant, document }) {
      begin();
      objects.set(indexKey(tenant, run_id), run_id);
      store(`${folder(run_id)}run.json`, document);
    },

    async putBlob(run_id, bytes) {
      begin();
      const sha256 = createHash('sha256').update(bytes).digest('hex');
      store(`${folder(run_id)}blobs/${sha256}`, Uint8Array.from(bytes));
      return sha256;
    },

    async getBlob(run_id, sha256) {
      begin();
      if (!/^[0-9a-f]{64}$/.test(sha256)) throw new RangeError('a blob is named by 64 hex digits');
      const bytes = objects.get(`${folder(run_id)}blobs/${sha256}`);
      return bytes === undefined ? null : Uint8Array.from(bytes as Uint8Array);
    },

    async events(run_id, after_seq, limit) {
      begin();
      const found = new Map<number, string>();
      for (const [key, value] of objects) {
        if (!key.startsWith(`${folder(run_id)}events/`)) continue;
        for (const line of String(value).split('\n').slice(0, -1)) found.set(decodeEvent(line).seq, line);
      }
      const events: string[] = [];
      for (let seq = after_seq + 1; events.length < limit; seq++) {
        const line = found.get(seq);
        if (line === undefined) break;
        events.push(line);
      }
      return events;
    },

    async getRun(run_id) {
      begin();
      const run = objects.get(`${folder(run_id)}run.json`);
      return run === undefined ? null : String(run);
    },

    async merge(run_id) {
      begin();
      const events = await this.events(run_id, 0, Number.MAX_SAFE_INTEGER);
      if (events.length === 0) return;
      const merged = segmentKey({ run_id, first_seq: 1, last_seq: events.length, events });
      store(merged, `${events.join('\n')}\n`);
      for (const key of [...objects.keys()]) if (key.startsWith(`${folder(run_id)}events/`) && key !== merged) objects.delete(key);
    },

    async* runs() {
      begin();
      const ids = new Set([...objects.keys()].flatMap((key) => /^runs\/([^/]+)\//.exec(key)?.[1] ?? []));
      for (const run_id of [...ids].sort()) {
        if (objects.has(removalKey(run_id))) continue;
        const events = await this.events(run_id, 0, Number.MAX_SAFE_INTEGER);
        yield { run_id, ended: objects.has(`${folder(run_id)}run.json`), last_seq: events.length };
      }
    },

    async* runsOf(tenant, day) {
      begin();
      const place = `index/${tenant}/${day}/`;
      for (const key of [...objects.keys()].sort()) if (key.startsWith(place)) yield key.slice(place.length);
    },

    async remove(removal) {
      begin();
      const { run_id, tenant } = removal;
      if (!objects.has(removalKey(run_id))) objects.set(removalKey(run_id), JSON.stringify(removal));
      objects.delete(indexKey(tenant, run_id));
      for (const key of [...objects.keys()]) if (key.startsWith(folder(run_id))) objects.delete(key);
    },

    async removal(run_id) {
      begin();
      const text = objects.get(removalKey(run_id));
      return text === undefined ? null : JSON.parse(String(text)) as Removal;
    },

    async putSchedule({ id, version, document }) {
      begin();
      const key = scheduleKey(id, version);
      for (const each of [...objects.keys()]) if (each.startsWith(scheduleFolder(id)) && each < key) objects.delete(each);
      store(key, document);
    },

    async removeSchedule(removal) {
      begin();
      for (const each of [...objects.keys()]) if (each.startsWith(scheduleFolder(removal.id))) objects.delete(each);
      store(`${scheduleFolder(removal.id)}deleted.json`, JSON.stringify(removal));
    },

    async* schedules() {
      begin();
      const keys = [...objects.keys()].filter((key) => key.startsWith('schedules/')).sort();
      for (const [index, key] of keys.entries()) {
        const [, id = '', name = ''] = key.split('/');
        const last = keys[index + 1]?.startsWith(scheduleFolder(id)) !== true;
        if (last && name !== 'deleted.json') yield { id, version: Number.parseInt(name, 10), document: String(objects.get(key)) };
      }
    },

    async check() {
      begin();
    },
  };
}

function folder(run_id: string): string {
  if (!isId('run', run_id)) throw new RangeError('not the id of a run');
  return `runs/${run_id}/`;
}

function scheduleFolder(id: string): string {
  if (!isId('sch', id)) throw new RangeError('not the id of a schedule');
  return `schedules/${id}/`;
}

function scheduleKey(id: string, version: number): string {
  if (!Number.isSafeInteger(version) || version < 1) throw new RangeError(`not a version: ${version}`);
  return `${scheduleFolder(id)}${String(version).padStart(12, '0')}.json`;
}

function removalKey(run_id: string): string {
  if (!isId('run', run_id)) throw new RangeError('not the id of a run');
  return `deleted/${run_id}.json`;
}

/** By the day in the id. */
function indexKey(tenant: string, run_id: string): string {
  return `index/${tenant}/${new Date(Number.parseInt(run_id.slice(4, 16), 16)).toISOString().slice(0, 10)}/${run_id}`;
}

function segmentKey({ run_id, first_seq, last_seq }: Segment): string {
  if (!Number.isSafeInteger(first_seq) || first_seq < 1 || last_seq < first_seq) throw new RangeError(`not a range of events: ${first_seq} to ${last_seq}`);
  return `${folder(run_id)}events/${String(first_seq).padStart(12, '0')}-${String(last_seq).padStart(12, '0')}.jsonl`;
}

function segmentText({ first_seq, last_seq, events }: Segment): string {
  if (events.length !== last_seq - first_seq + 1) throw new RangeError(`${events.length} events for the range ${first_seq} to ${last_seq}`);
  for (const [index, line] of events.entries()) {
    if (line.includes('\n') || decodeEvent(line).seq !== first_seq + index) throw new RangeError(`event ${first_seq + index} is not what stands at its place`);
  }
  return `${events.join('\n')}\n`;
}
