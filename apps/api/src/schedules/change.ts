/**
 * Making schedules and changing them.
 *
 * 1. Everything that can be refused is refused before anything is written, as for the run itself; what a schedule cannot know ahead (an agent that goes, a session
 *    that is busy) it says in `last_error` when the time comes.
 * 2. The same Idempotency-Key is the same schedule.
 * 3. Nothing happens after `not_after`. 503 `unavailable` is answered only where nothing was sent; else `outcome_unknown`.
 */
import { idIn, isId, shardOf } from '@treadle/core';
import { mintRunId, type Schedule, type ScheduleDefinition } from '@treadle/engine';
import type { ApiContext } from '../dependencies.ts';
import { invalidRequest, notFound, outcomeUnknown, Problem, unavailable } from '../problem.ts';
import { namedLimits } from '../runs/command-schema.ts';
import { newRun } from '../runs/create.ts';
import { under } from '../runs/under.ts';
import { bodyHashOf, usedWithAnotherBody } from '../server/idempotency.ts';
import { StoreUnavailable } from '../store/unavailable.ts';
import type { ChangeScheduleBody, CreateScheduleBody, ScheduledRunBody } from './schedule-schema.ts';

/** Of one tenant. */
const mostSchedules = 1000;

export interface AskedSchedule {
  readonly tenant: string;
  readonly body: CreateScheduleBody;
  readonly rawBody: unknown;
  readonly idempotencyKey: string | undefined;
}

/** `isNew` false: an earlier request with this key has made it. */
export async function acceptSchedule(context: ApiContext, asked: AskedSchedule): Promise<{ readonly schedule: Schedule; readonly isNew: boolean }> {
  const { tenant, body } = asked;
  const store = context.store();
  const now = await store.now();
  const definition = await checkedDefinition(context, tenant, body);
  const next_ms = nextTime(context, definition, now);
  const not_after_ms = now + context.settings.notAfterMs;
  const id = await reservedId(context, asked, { minted: mintId(context, definition), not_after_ms });
  const schedules = context.schedules();
  const reply = await schedules.create({ id, tenant, definition, paused: body.paused, next_ms, not_after_ms, most: mostSchedules }).catch((error: unknown) => { throw unclear(error, 'created'); });
  switch (reply) {
    case 'too_many': throw new Problem({ status: 429, code: 'quota_exceeded', detail: `There are ${mostSchedules} schedules; remove one that is not needed any more.` });
    case 'too_late': throw tooLate();
    case 'removed': throw new Problem({ status: 404, code: 'not_found', detail: 'The schedule that was made with this Idempotency-Key has been deleted. For a new one take a new key.' });
    case 'created': case 'exists': {
      const schedule = await schedules.schedule(id).catch((error: unknown) => { throw unclear(error, 'created'); });
      if (schedule?.tenant !== tenant) throw notFound();
      return { schedule, isNew: reply === 'created' };
    }
  }
}

/** Throws the 404 `Problem` for what this tenant does not have. */
export async function findSchedule(context: ApiContext, tenant: string, id: string): Promise<Schedule> {
  const found = isId('sch', id) ? await context.schedules().schedule(id) : null;
  if (found?.tenant !== tenant) throw notFound();
  return found;
}

const tries = 5;

/** Made from the schedule as it is at that moment: where others change it meanwhile it is made anew, a few times. Answers what it is then. */
export async function changeSchedule(context: ApiContext, { tenant, id, body }: { readonly tenant: string; readonly id: string; readonly body: ChangeScheduleBody }): Promise<Schedule> {
  const change_id = context.deps.random.uuid();
  for (let left = tries; left > 0; left--) {
    const before = await findSchedule(context, tenant, id);
    const definition = await changedDefinition(context, before, body);
    const now = await context.store().now();
    const timed = body.cron !== undefined || body.timezone !== undefined;
    const reply = await context.schedules().change({
      id, tenant, change_id, version: before.version, definition, paused: body.paused ?? before.paused, next_ms: timed ? nextTime(context, definition, now) : 'as_it_is',
      not_after_ms: now + context.settings.notAfterMs,
    }).catch((error: unknown) => { throw unclear(error, 'changed'); });
    if (reply === 'changed') return await context.schedules().schedule(id).catch((error: unknown) => { throw unclear(error, 'changed'); }) ?? before;
    if (reply === 'missing') throw notFound();
    if (reply === 'too_late') throw tooLate();
  }
  throw unavailable('Others are changing this schedule; nothing was changed by this request.');
}

/** Of one that was removed it answers what it answered then. */
export async function removeSchedule(context: ApiContext, tenant: string, id: string): Promise<{ readonly id: string; readonly deleted_at: string }> {
  if (!isId('sch', id)) throw notFound();
  const not_after_ms = await context.store().now() + context.settings.notAfterMs;
  const reply = await context.schedules().remove({ id, tenant, not_after_ms }).catch((error: unknown) => { throw unclear(error, 'deleted'); });
  switch (reply.type) {
    case 'removed': return { id, deleted_at: new Date(reply.removed_at_ms).toISOString() };
    case 'missing': throw notFound();
    case 'too_late': throw tooLate();
  }
}

async function changedDefinition(context: ApiContext, { id, tenant, definition }: Schedule, body: ChangeScheduleBody): Promise<ScheduleDefinition> {
  const { name, cron, timezone, catch_up_s } = definition;
  const rules = { name: body.name === undefined ? name : body.name, cron: body.cron ?? cron, timezone: body.timezone ?? timezone, catch_up_s: body.catch_up_s ?? catch_up_s };
  if (body.run === undefined) return { ...rules, run: definition.run };
  const { session_id } = body.run;
  if (session_id !== undefined && shardOf(session_id) !== shardOf(id)) throw invalidRequest([{ path: 'run.session_id', problem: 'lies in another part of the store than this schedule; make a new schedule for it' }]);
  return { ...rules, run: await checkedRun(context, tenant, body.run) };
}

async function checkedDefinition(context: ApiContext, tenant: string, { name, cron, timezone, catch_up_s, run }: CreateScheduleBody): Promise<ScheduleDefinition> {
  return { name, cron, timezone, catch_up_s, run: await checkedRun(context, tenant, run) };
}

/** The same checks as for a run that is made now. */
async function checkedRun(context: ApiContext, tenant: string, body: ScheduledRunBody): Promise<ScheduleDefinition['run']> {
  const { spec, tags, webhook = null } = under('run', () => newRun(context, { tenant, body, traceparent: null }));
  const { session_id = null, input, limits, metadata, priority, on_busy, chain = null } = body;
  if (session_id !== null && (await context.store().session(session_id))?.tenant !== tenant) {
    throw new Problem({ status: 404, code: 'not_found', detail: 'There is no such session, or it is not yours.', errors: [{ path: 'run.session_id', problem: 'unknown session' }] });
  }
  return { agent: spec.name, input, limits: namedLimits(limits), metadata, tags, priority, session_id, on_busy, chain, webhook };
}

function nextTime({ deps }: ApiContext, { cron, timezone }: ScheduleDefinition, now_ms: number): number {
  const reading = deps.cron(cron, timezone);
  if (reading.type === 'invalid') throw invalidRequest([{ path: reading.field, problem: reading.problem }]);
  const next = reading.rule.next(now_ms);
  if (next === null) throw invalidRequest([{ path: 'cron', problem: 'no such time ever comes' }]);
  return next;
}

/** A session's runs lie in its shard, and so do the runs of a schedule. */
function mintId({ deps: { random }, settings: { shards } }: ApiContext, { run: { session_id } }: ScheduleDefinition): string {
  return idIn('sch', shardOf(session_id ?? mintRunId({ random, shards })), random.uuid());
}

async function reservedId(context: ApiContext, asked: AskedSchedule, { minted, not_after_ms }: { readonly minted: string; readonly not_after_ms: number }): Promise<string> {
  if (asked.idempotencyKey === undefined) return minted;
  const body_hash = bodyHashOf(asked.rawBody);
  // A line break keeps it apart from keys of new runs, which hold printable characters alone.
  const reply = await context.store().reserveKey({ tenant: asked.tenant, key: `schedule\n${asked.idempotencyKey}`, run_id: minted, body_hash, not_after_ms });
  if (reply.type === 'too_late') throw tooLate();
  if (reply.body_hash !== body_hash) throw usedWithAnotherBody();
  return reply.run_id;
}

function tooLate(): Problem {
  return unavailable('The store took too long; nothing was done and will not be.');
}

const sayAgain = { created: 'Ask again with the same Idempotency-Key.', changed: 'Look at it, or ask again for the same change.', deleted: 'Ask again: a deletion is answered as the first time.' } as const;

function unclear(error: unknown, done: keyof typeof sayAgain): unknown {
  if (!(error instanceof StoreUnavailable) || !error.sent) return error;
  return outcomeUnknown(`The store did not say whether the schedule was ${done}. ${sayAgain[done]}`, error);
}
