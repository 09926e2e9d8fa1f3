/**
 * Every key of the run store is spelt here and nowhere else. What one script touches carries one hash tag: a run's keys,
 * its shard's indexes and the shard's queue live in the slot of `{prefix:SS}`, SS being the shard in two hex digits.
 *
 * Per run    ctl (hash: control record) · state (hash: the fold's fields) · events (stream, id = seq-0) · messages (list)
 *            ledger (hash: tool_use_id → entry) · inbox (list) · commands (zset: accepted command ids by number, bounded)
 * Per shard  due (zset: waiting runs by time) · held (zset: runs that have a job, by when to look again) · to_archive (zset)
 *            session:<id> (hash: tenant, current, last) · session-queue:<id> (list: runs that wait for their session)
 *            sessions of a tenant (zset) · tally (hash: how many runs are queued, running, paused, and how many calls wait for a word)
 *            feed (stream, dense ids n-0) · feed_n (its counter) · expiring (zset: "run tenant" by time) · index of a tenant (zset)
 *            usage of a day and a tenant (hash: ["agent","model"] → sums)
 *            schedule:<id> (hash) · scheduled (zset: schedules by when to look) · schedules of a tenant (zset) · schedules_to_archive (zset)
 *            webhooks (scripts/includes/webhooks.lua): tenants · lanes:<tenant> · lane:<tenant> <lane> · of:<run id> · list:<tenant> · ended:<tenant> · expiring
 * Elsewhere  reservations of idempotency keys, each in a slot of its own
 */
import { createHash } from 'node:crypto';
import { shardOf } from '@treadle/core';

const legalPrefix = /^[A-Za-z0-9_.:-]{1,64}$/;

export interface Keys {
  /** KEYS 1 to 6 (scripts/includes/shard-keys.lua). */
  shard(shard: number): string[];
  /** KEYS 7 to 13 (scripts/includes/run-keys.lua), after those of the run's shard. */
  run(run_id: string): string[];
  ctl(run_id: string): string;
  /** What a script needs of another run to give it a command (scripts/includes/accept.lua). */
  commands(run_id: string): { readonly ctl: string; readonly inbox: string; readonly commands: string };
  events(run_id: string): string;
  inbox(run_id: string): string;
  feed(shard: number): string;
  index(shard: number, tenant: string): string;
  session(session_id: string): string;
  sessionQueue(session_id: string): string;
  sessions(shard: number, tenant: string): string;
  tally(shard: number): string;
  /** Written by whoever asks whether the shard takes writes. */
  probe(shard: number): string;
  /** Spellings for scripts that find names themselves; `*` stands for the name. */
  ctlSpelling(shard: number): string;
  eventsSpelling(shard: number): string;
  indexSpelling(shard: number): string;
  sessionSpelling(shard: number): string;
  sessionQueueSpelling(shard: number): string;
  /** What a tenant's runs have used that ended on a day. */
  usage(shard: number, day: string, tenant: string): string;
  schedule(schedule_id: string): string;
  scheduled(shard: number): string;
  /** The schedules of a tenant. */
  schedules(shard: number, tenant: string): string;
  schedulesToArchive(shard: number): string;
  webhooks(shard: number): WebhookKeys;
  reservation(tenant: string, key: string): string;
}

/** `*` stands for a tenant; in `lane` for a tenant and a lane, in `delivery` for a run id. */
export interface WebhookKeys {
  readonly tenants: string; readonly lanes: string; readonly expiring: string; readonly tally: string; readonly lane: string; readonly delivery: string; readonly list: string; readonly ended: string;
}

/** Throws `RangeError` for a prefix with other characters than letters, digits, `_ . : -`. */
export function createKeys(prefix: string): Keys {
  if (!legalPrefix.test(prefix)) throw new RangeError(`the prefix "${prefix}" may hold only letters, digits and _ . : - (1 to 64 of them)`);
  const base = (shard: number): string => `{${prefix}:${shard.toString(16).padStart(2, '0')}}:`;
  const ofRun = (run_id: string, part: string): string => `${base(shardOf(run_id))}run:${run_id}:${part}`;
  const shardKeys = (shard: number): string[] =>
    ['due', 'held', 'to_archive', 'feed', 'feed_n', 'expiring'].map((part) => `${base(shard)}${part}`);
  return {
    shard: shardKeys,
    run: (run_id) => [
      ...shardKeys(shardOf(run_id)),
      ...['ctl', 'state', 'events', 'messages', 'ledger', 'inbox', 'commands'].map((part) => ofRun(run_id, part)),
    ],
    ctl: (run_id) => ofRun(run_id, 'ctl'),
    commands: (run_id) => ({ ctl: ofRun(run_id, 'ctl'), inbox: ofRun(run_id, 'inbox'), commands: ofRun(run_id, 'commands') }),
    events: (run_id) => ofRun(run_id, 'events'),
    inbox: (run_id) => ofRun(run_id, 'inbox'),
    feed: (shard) => `${base(shard)}feed`,
    index: (shard, tenant) => `${base(shard)}index:${tenant}`,
    session: (id) => `${base(shardOf(id))}session:${id}`,
    sessionQueue: (id) => `${base(shardOf(id))}session-queue:${id}`,
    sessions: (shard, tenant) => `${base(shard)}sessions:${tenant}`,
    tally: (shard) => `${base(shard)}tally`,
    probe: (shard) => `${base(shard)}probe`,
    sessionSpelling: (shard) => `${base(shard)}session:*`,
    sessionQueueSpelling: (shard) => `${base(shard)}session-queue:*`,
    ctlSpelling: (shard) => `${base(shard)}run:*:ctl`,
    eventsSpelling: (shard) => `${base(shard)}run:*:events`,
    indexSpelling: (shard) => `${base(shard)}index:*`,
    usage: (shard, day, tenant) => `${base(shard)}usage:${day}:${tenant}`,
    schedule: (id) => `${base(shardOf(id))}schedule:${id}`,
    scheduled: (shard) => `${base(shard)}scheduled`,
    schedules: (shard, tenant) => `${base(shard)}schedules:${tenant}`,
    schedulesToArchive: (shard) => `${base(shard)}schedules_to_archive`,
    webhooks: (shard) => ({
      tenants: `${base(shard)}webhooks:tenants`, lanes: `${base(shard)}webhooks:lanes:*`, expiring: `${base(shard)}webhooks:expiring`, tally: `${base(shard)}tally`, lane: `${base(shard)}webhooks:lane:*`,
      delivery: `${base(shard)}webhooks:of:*`, list: `${base(shard)}webhooks:list:*`, ended: `${base(shard)}webhooks:ended:*`,
    }),
    reservation: (tenant, key) => `{${prefix}:idem:${createHash('sha256').update(JSON.stringify([tenant, key])).digest('hex')}}`,
  };
}
