/** Schedules in Redis, beside the runs: each in the shard that its id names. The promises (C1 to C5) are the port's; each call is one script. */
import { shardOf } from '@treadle/core';
import type { Schedule, ScheduleAdvance, ScheduleDefinition, ScheduleDuty, ScheduleStore } from '@treadle/engine';
import type { JobFragment } from './job-fragment.ts';
import { createKeys, type Keys } from './keys.ts';
import type { RedisClient } from './redis-connection.ts';
import { asReply, unknownReply } from './replies.ts';
import { mergePages } from './run-list.ts';
import { createScriptRunner, type Reply, type RunScript } from './script-runner.ts';

export interface ScheduleStoreOptions {
  readonly prefix: string;
  readonly shards: number;
  /** How long a removed schedule is known as such. Default 7 days. */
  readonly keepRemovedMs?: number;
}

interface Parts { readonly run: RunScript; readonly keys: Keys; readonly shards: number; readonly keepRemovedMs: number }

/** `jobs`: the scripts are loaded with the run store's own. */
export function createScheduleStore(deps: { readonly redis: RedisClient; readonly jobs: JobFragment }, options: ScheduleStoreOptions): ScheduleStore {
  const parts: Parts = { run: createScriptRunner(deps.redis, deps.jobs.lua), keys: createKeys(options.prefix), shards: options.shards, keepRemovedMs: options.keepRemovedMs ?? 7 * 24 * 3_600_000 };
  return { ...directory(parts), ...upkeep(parts), schedule: (id) => read(parts, id) };
}

/** Absent numbers are empty texts: a hash has no null. */
const textOf = (ms: number | null): string => (ms === null ? '' : String(ms));
const numberOf = (text: string | undefined): number | null => (text === undefined || text === '' ? null : Number(text));

function directory({ run, keys, shards }: Parts): Pick<ScheduleStore, 'create' | 'change' | 'remove' | 'list'> {
  const shardList = Array.from({ length: shards }, (_, shard) => shard);
  return {
    async create({ id, tenant, definition, paused, next_ms, not_after_ms, most }) {
      const counts = await Promise.all(shardList.map(async (shard) => Number(asReply(await run('count_schedules', { keys: [keys.schedules(shard, tenant)], args: [] }))[1])));
      const elsewhere = counts.reduce((sum, count) => sum + count, 0) - counts[shardOf(id)]!;
      const reply = await ask(run, 'create_schedule', { keys: createKeysOf(keys, id, tenant), args: [JSON.stringify({
        id, tenant, definition: JSON.stringify(definition), paused: paused ? 1 : 0, version: 1, next: textOf(next_ms), not_after_ms, most: Math.max(0, most - elsewhere), archive: true,
      })] });
      switch (reply[0]) {
        case 'created': case 'exists': case 'removed': case 'too_many': case 'too_late': return reply[0];
        default: throw unknownReply('create_schedule', reply);
      }
    },

    async change({ id, next_ms, definition, paused, ...change }) {
      const reply = await ask(run, 'change_schedule', {
        keys: [keys.schedule(id), keys.scheduled(shardOf(id)), keys.schedulesToArchive(shardOf(id))],
        args: [JSON.stringify({ ...change, id, definition: JSON.stringify(definition), paused: paused ? 1 : 0, ...(next_ms === 'as_it_is' ? {} : { next: textOf(next_ms) }) })],
      });
      switch (reply[0]) {
        case 'changed': case 'conflict': case 'missing': case 'too_late': return reply[0];
        default: throw unknownReply('change_schedule', reply);
      }
    },

    async remove({ id, tenant, not_after_ms }) {
      const reply = await ask(run, 'remove_schedule', { keys: createKeysOf(keys, id, tenant), args: [id, tenant, not_after_ms] });
      switch (reply[0]) {
        case 'removed': return { type: 'removed', removed_at_ms: Number(reply[1]) };
        case 'missing': case 'too_late': return { type: reply[0] };
        default: throw unknownReply('remove_schedule', reply);
      }
    },

    async list({ tenant, before_id, limit }) {
      const pages = await Promise.all(shardList.map(async (shard) => {
        const reply = await ask(run, 'list_schedules', { keys: [keys.schedules(shard, tenant)], args: [before_id ?? '', limit] });
        return { scanned_to: reply[1] === '' ? null : reply[1] as string, run_ids: reply.slice(2) as string[] };
      }));
      const { run_ids: ids, next_before_id } = mergePages(pages, limit);
      return { ids, next_before_id };
    },
  };
}

function upkeep({ run, keys, keepRemovedMs }: Parts): Omit<ScheduleStore, 'create' | 'change' | 'remove' | 'list' | 'schedule'> {
  return {
    async due(shard, { limit, retry_ms }) {
      const reply = await ask(run, 'take_due', { keys: [keys.scheduled(shard)], args: [limit, retry_ms] });
      return { now_ms: Number(reply[1]), ids: reply.slice(2) as string[] };
    },

    async advance(advance) {
      const reply = await ask(run, 'advance_schedule', { keys: [keys.schedule(advance.id), keys.scheduled(shardOf(advance.id))], args: [JSON.stringify(advanceOf(advance))] });
      if (reply[0] !== 'advanced' && reply[0] !== 'moved') throw unknownReply('advance_schedule', reply);
      return reply[0];
    },

    leave: async (id, from_ms) => {
      await run('leave_schedule', { keys: [keys.schedule(id), keys.scheduled(shardOf(id))], args: [id, String(from_ms)] });
    },

    async dueForArchive(shard, { limit, retry_ms }) {
      const reply = await ask(run, 'take_due', { keys: [keys.schedulesToArchive(shard)], args: [limit, retry_ms] });
      return reply.slice(2) as string[];
    },

    async duty(id): Promise<ScheduleDuty | null> {
      const fields = await fieldsOf({ run, keys }, id);
      if (fields === null) return null;
      const { tenant = '', removed_at, version } = fields;
      if (removed_at !== undefined) return { type: 'remove', id, tenant, version: Number(version), removed_at_ms: Number(removed_at) };
      return { type: 'put', schedule: scheduleOf(id, fields) };
    },

    archived: async (id, version) => {
      await run('schedule_archived', { keys: [keys.schedule(id), keys.schedulesToArchive(shardOf(id))], args: [id, version, keepRemovedMs] });
    },

    async restore({ id, tenant, definition, paused, created_at_ms, version, next_ms }) {
      const reply = await ask(run, 'create_schedule', { keys: createKeysOf(keys, id, tenant), args: [JSON.stringify({
        id, tenant, definition: JSON.stringify(definition), paused: paused ? 1 : 0, created_at: String(created_at_ms), version, next: textOf(next_ms),
      })] });
      return reply[0] === 'created' ? 'restored' : 'exists';
    },
  };
}

async function ask(run: RunScript, name: Parameters<RunScript>[0], call: Parameters<RunScript>[1]): Promise<Reply> {
  return asReply(await run(name, call));
}

/** Of the scripts that make a schedule and remove it. */
function createKeysOf(keys: Keys, id: string, tenant: string): string[] {
  const shard = shardOf(id);
  return [keys.schedule(id), keys.scheduled(shard), keys.schedules(shard, tenant), keys.schedulesToArchive(shard)];
}

function advanceOf({ id, from_ms, next_ms, skipped, outcome }: ScheduleAdvance): object {
  const more = outcome.type === 'fired' ? { due: String(outcome.due_ms), run_id: outcome.run_id } : outcome.type === 'failed' ? { error: JSON.stringify(outcome.error) } : {};
  return { id, from: String(from_ms), next: textOf(next_ms), skipped, outcome: outcome.type, ...more };
}

type Fields = Readonly<Record<string, string | undefined>>;

async function fieldsOf({ run, keys }: Pick<Parts, 'run' | 'keys'>, id: string): Promise<Fields | null> {
  const [word, ...flat] = asReply(await run('schedule', { keys: [keys.schedule(id)], args: [] })) as unknown as string[];
  if (word === 'missing') return null;
  return Object.fromEntries(Array.from({ length: flat.length / 2 }, (_, index) => [flat[index * 2]!, flat[index * 2 + 1]!]));
}

async function read(parts: Parts, id: string): Promise<Schedule | null> {
  const fields = await fieldsOf(parts, id);
  return fields === null || fields.removed_at !== undefined ? null : scheduleOf(id, fields);
}

function scheduleOf(id: string, fields: Fields): Schedule {
  const { last_due, last_run, error } = fields;
  return {
    id, tenant: fields.tenant ?? '', definition: JSON.parse(fields.definition ?? '') as ScheduleDefinition, paused: fields.paused === '1', created_at_ms: Number(fields.created_at), version: Number(fields.version),
    next_ms: numberOf(fields.next), last: last_due === undefined || last_run === undefined ? null : { due_ms: Number(last_due), run_id: last_run },
    fired: Number(fields.fired), skipped: Number(fields.skipped), failed: Number(fields.failed), last_error: error === undefined ? null : JSON.parse(error) as Schedule['last_error'],
  };
}
