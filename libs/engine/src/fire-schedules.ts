/**
 * Schedules whose time has come make their runs.
 *
 * F1  One run for a due time, whatever races and dies: the run's id is made of the schedule and the time, a run is created once per id, and only then is the
 *     schedule moved on, from the very time that was acted on.
 * F2  The store's clock decides what is due and what was missed; this process' clock nothing.
 * F3  Of several times that have passed the latest is made up for, if it is no older than the schedule allows; the others are left out and counted.
 * F4  A time that cannot make a run is left behind with the reason, and the schedule goes on. What may be otherwise in a moment (no answer from the store, an agent
 *     that another worker has, an archive that is full) is left where it is, and looked at again when the store hands it out again: in the first case at once.
 */
import { createHash } from 'node:crypto';
import { idIn, isEnded, limitsOfRun, shardOf, type AgentSpec } from '@treadle/core';
import { createRun, type CreateDeps, type NewRun } from './create-run.ts';
import type { Archive } from './ports/archive.ts';
import type { CronRule, CronTimes } from './ports/cron-times.ts';
import type { Schedule, ScheduleAdvance, ScheduleError, ScheduleUpkeep } from './ports/schedule-store.ts';

export interface FireDeps extends CreateDeps {
  readonly schedules: Pick<ScheduleUpkeep, 'due' | 'schedule' | 'advance' | 'leave'>;
  readonly archive: Pick<Archive, 'events'>;
  readonly cron: CronTimes;
  /** An agent of this worker, with another chain where one is named; or what of the two is not known here. */
  readonly agent: (name: string, chain: string | null) => { readonly spec: AgentSpec; readonly version: string } | 'agent' | 'chain';
  /** How long an ended run stays in the store: after that it may be in the archive alone. */
  readonly retention_ms: number;
  /** In words why no new run is taken now; null where one is. */
  readonly full?: () => string | null;
  readonly observe?: (fired: Fired) => void;
}

/** What came of a time. `skipped`: how many before it were left out. */
export interface Fired {
  readonly schedule: Schedule;
  readonly skipped: number;
  readonly outcome: ScheduleAdvance['outcome'];
  /** False where somebody else had made the run. */
  readonly created: boolean;
}

export interface FireRound {
  /** Schedules that are looked at, at most. */
  readonly limit: number;
  readonly concurrency: number;
  /** When one that was left comes up again, ms. */
  readonly retry_ms: number;
}

/** Of a long gap no more are counted: each costs a look at the calendar. */
const mostCounted = 500;
/** From here on a time may have been acted on before the store lost its last writes. */
const lateMs = 5000;
/** How long an agent that is not here may be somewhere else, during a release. */
const elsewhereMs = 60_000;
/** How long a creation may be on its way. */
const createMs = 10_000;

/** Throws the first failure at the end of the round; one schedule's fault keeps back no other. */
export async function fireSchedules(deps: FireDeps, shard: number, round: FireRound): Promise<void> {
  if ((deps.full?.() ?? null) !== null) return;
  const { now_ms, ids } = await deps.schedules.due(shard, round);
  const left = [...ids];
  let failure: unknown = null;
  const hand = async (): Promise<void> => {
    for (let id = left.shift(); id !== undefined; id = left.shift()) await fire(deps, id, now_ms).catch((error: unknown) => { failure ??= error; });
  };
  await Promise.all(Array.from({ length: round.concurrency }, hand));
  if (failure !== null) throw failure instanceof Error ? failure : new Error('a schedule failed', { cause: failure });
}

async function fire(deps: FireDeps, id: string, now_ms: number): Promise<void> {
  const schedule = await deps.schedules.schedule(id);
  if (schedule === null || schedule.paused || schedule.next_ms === null || schedule.next_ms > now_ms) return;
  const from_ms = schedule.next_ms;
  const { cron, timezone, catch_up_s } = schedule.definition;
  const reading = deps.cron(cron, timezone);
  if (reading.type === 'invalid') throw new Error(`the schedule ${id} cannot be read here: ${reading.problem}`);
  const { rule } = reading;
  const due_ms = Math.max(from_ms, rule.latest(now_ms) ?? from_ms);
  const missed = timesFrom(rule, from_ms, due_ms);
  const tooLate = now_ms - due_ms > catch_up_s * 1000;
  const made = tooLate ? skippedTime : await makeRun(deps, schedule, { due_ms, now_ms });
  if (made === null) return;
  const skipped = missed + (tooLate ? 1 : 0);
  const reply = await deps.schedules.advance({ id, from_ms, next_ms: rule.next(Math.max(now_ms, due_ms)), skipped, outcome: made.outcome });
  if (reply === 'advanced') deps.observe?.({ schedule, skipped, ...made });
}

type Made = Pick<Fired, 'outcome' | 'created'>;
const skippedTime: Made = { outcome: { type: 'skipped' }, created: false };

/** How many times lie from `from_ms` on before `due_ms`. */
function timesFrom(rule: CronRule, from_ms: number, due_ms: number): number {
  let count = 0;
  for (let at: number | null = from_ms; at !== null && at < due_ms && count < mostCounted; at = rule.next(at)) count++;
  return count;
}

interface Moment { readonly due_ms: number; readonly now_ms: number }

/** Null: left where it is. */
async function makeRun(deps: FireDeps, schedule: Schedule, { due_ms, now_ms }: Moment): Promise<Made | null> {
  const { run, catch_up_s } = schedule.definition;
  const failed = (code: string, message: string): Made => ({ outcome: { type: 'failed', error: { due_ms, code, message } satisfies ScheduleError }, created: false });
  const offered = deps.agent(run.agent, run.chain);
  if (typeof offered === 'string') {
    // Since the schedule stands here, and well within its window: a later time, or the end of the window, must not hide the reason.
    if (now_ms - (schedule.next_ms ?? due_ms) < Math.min(elsewhereMs, catch_up_s * 500)) {
      // At once: were it put off as what failed is, this worker, whose rounds have the same length, would be the first to see it again, each time.
      if (schedule.next_ms !== null) await deps.schedules.leave(schedule.id, schedule.next_ms);
      return null;
    }
    return offered === 'agent' ? failed('agent_not_found', `No agent is named "${run.agent}" any more.`) : failed('invalid_request', `No chain is named "${run.chain}" any more.`);
  }
  const limits = limitsOfRun(offered.spec.limits, run.limits);
  if (limits.type !== 'ok') return failed('limit_above_maximum', `limits.${limits.limit} may be at most ${limits.max} for this agent now.`);
  if (showsImages(schedule) && !offered.spec.chain.models.some((model) => model.supports_images)) return failed('invalid_request', 'No model of this agent takes images any more.');

  const run_id = scheduledRunId(schedule.id, due_ms);
  const outcome = { type: 'fired', due_ms, run_id } as const;
  if (now_ms - due_ms >= lateMs) {
    const archived = await isArchived(deps, run_id);
    if (archived === true) return { outcome, created: false };
    // It may have been made, have ended and left the store, and nobody can be asked.
    if (archived === null && now_ms - due_ms >= deps.retention_ms) return null;
  }
  const reply = await create(deps, { schedule, run_id, spec: offered.spec, agent_version: offered.version, limits: limits.limits, now_ms });
  switch (reply.type) {
    case 'created': case 'exists':
      if (run.on_busy === 'interrupt' && run.session_id !== null) await interrupt(deps, run.session_id, run_id);
      return { outcome, created: reply.type === 'created' };
    case 'session_busy': return failed('session_busy', `The session was busy with ${reply.run_id}.`);
    case 'session_missing': return failed('not_found', 'The session is not there.');
    // This process was held up; by now another one may be at it.
    case 'too_late': return null;
    case 'fenced': throw new Error('a run without a parent was refused for its parent');
  }
}

interface Making { readonly schedule: Schedule; readonly run_id: string; readonly spec: AgentSpec; readonly agent_version: string; readonly limits: NewRun['limits']; readonly now_ms: number }

async function create(deps: FireDeps, { schedule, run_id, spec, agent_version, limits, now_ms }: Making) {
  const { id, tenant, definition: { run } } = schedule;
  const not_after_ms = now_ms + createMs;
  const asked: NewRun = {
    tenant, spec, agent_version, limits, input: run.input, metadata: run.metadata, tags: run.tags, priority: run.priority, run_at: null, schedule_id: id, webhook: run.webhook,
    session_id: run.session_id, when_busy: run.on_busy === 'reject' ? 'reject' : 'queue',
  };
  const { reply } = await createRun(deps, asked, { run_id, not_after_ms });
  const { session_id } = run;
  if (reply.type !== 'session_missing' || session_id === null || await deps.store.session(session_id) !== null) return reply;
  // It was the tenant's when the schedule was made; nobody has used it for so long that it was forgotten.
  await deps.store.createSession({ id: session_id, tenant, not_after_ms });
  return (await createRun(deps, asked, { run_id, not_after_ms })).reply;
}

/** The run in front is cancelled, if the new one still waits behind it: whoever died before that left it to the next. */
async function interrupt({ store, clock }: FireDeps, session_id: string, run_id: string): Promise<void> {
  const [session, own] = await Promise.all([store.session(session_id), store.read(run_id, 'messages')]);
  const current = session?.current ?? null;
  if (current === null || current === run_id || own === null || isEnded(own.status)) return;
  await store.command({ run_id: current, command_id: `interrupt-${run_id}`, command: { type: 'cancel' }, not_after_ms: Math.round(clock.nowMs()) + createMs });
}

/** Null where the archive does not answer. */
async function isArchived({ archive }: FireDeps, run_id: string): Promise<boolean | null> {
  return archive.events(run_id, 0, 1).then((events) => events.length > 0, () => null);
}

function showsImages({ definition: { run: { input } } }: Schedule): boolean {
  return typeof input !== 'string' && input.some((part) => part.type === 'image');
}

/** The same for the same time of the same schedule; sorts by that time, and lies in the schedule's shard. */
export function scheduledRunId(schedule_id: string, due_ms: number): string {
  const hash = createHash('sha256').update(`${schedule_id}\n${due_ms}`).digest('hex');
  const variant = ((Number.parseInt(hash.charAt(3), 16) & 3) | 8).toString(16);
  return idIn('run', shardOf(schedule_id), `${due_ms.toString(16).padStart(12, '0')}7${hash.slice(0, 3)}${variant}${hash.slice(4, 19)}`);
}
