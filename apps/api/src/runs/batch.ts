/**
 * POST /v1/runs/batch: up to a thousand runs in one request.
 *
 * 1. Everything that can be refused is refused before any run is created, sessions included, and the answer names the index.
 * 2. The Idempotency-Key is the whole batch's: each run's reservation is made of the key and its index, so asking again with the same body answers the same runs, and
 *    completes what was interrupted, each run exactly once.
 * 3. Runs of one session are created one after the other, in their order; others side by side, a few at once.
 * 4. Where the store goes away in the middle the answer is `outcome_unknown`: some runs may be there.
 */
import type { RunView } from '@treadle/engine';
import { z } from 'zod';
import type { ApiContext } from '../dependencies.ts';
import { invalidRequest, outcomeUnknown, Problem, unavailable } from '../problem.ts';
import { problemOf } from '../server/answer-errors.ts';
import { bodyHashOf, usedWithAnotherBody } from '../server/idempotency.ts';
import { ArchiveUnavailable, StoreUnavailable } from '../store/unavailable.ts';
import { acceptRun, newRun, refuseWhereFull, type AcceptedRun } from './create.ts';
import { createRunSchema, laterFieldsOf } from './create-schema.ts';
import { eachOf } from './each-of.ts';
import { placed, under } from './under.ts';

const mostRuns = 1000;
export const maxBatchBytes = 8 * 1024 * 1024;

export const batchSchema = z.strictObject({ runs: z.array(createRunSchema).min(1).max(mostRuns) });

export type BatchBody = z.output<typeof batchSchema>;

export interface AskedBatch {
  readonly tenant: string;
  readonly body: BatchBody;
  readonly rawBody: unknown;
  readonly idempotencyKey: string | undefined;
  readonly traceparent: string | null;
}

/** `isNew` false: every run had been created by an earlier request with this key. */
export interface AcceptedBatch { readonly views: readonly RunView[]; readonly isNew: boolean }

/** Told before each of them is looked at: a body has room for millions. */
export function checkNumber(body: unknown): void {
  const runs = (body as { runs?: unknown } | null | undefined)?.runs;
  if (Array.isArray(runs) && runs.length > mostRuns) throw invalidRequest([{ path: 'runs', problem: `expected at most ${mostRuns}` }]);
}

/** The paths of what a later release will take. */
export function laterInBatch(body: unknown): string[] {
  const runs = (body as { runs?: unknown } | null | undefined)?.runs;
  return Array.isArray(runs) ? runs.slice(0, mostRuns).flatMap((run, index) => laterFieldsOf(run).map((path) => `runs.${index}.${path}`)) : [];
}

/** Throws the `Problem` with the index of the run that cannot be made. */
export async function acceptBatch(context: ApiContext, asked: AskedBatch): Promise<AcceptedBatch> {
  const { tenant, body: { runs }, traceparent } = asked;
  runs.forEach((body, index) => under(`runs.${index}`, () => newRun(context, { tenant, body, traceparent })));
  refuseWhereFull(context);
  // What was refused for a session must not use up the key.
  if (!await isRepeat(context, asked)) {
    await checkSessions(context, asked);
    await reserve(context, asked);
  }
  const accepted = await createAll(context, asked);
  return { views: accepted.map(({ view }) => view), isNew: accepted.some(({ isNew }) => isNew) };
}

interface Reservation { readonly tenant: string; readonly key: string; readonly run_id: string; readonly body_hash: string }

/** A line break keeps it apart from keys of new runs, which hold printable characters alone. */
function reservationOf({ tenant, idempotencyKey, rawBody }: AskedBatch): Reservation | null {
  if (idempotencyKey === undefined) return null;
  return { tenant, key: `batch\n${idempotencyKey}`, run_id: 'batch', body_hash: bodyHashOf(rawBody) };
}

/** Looks, and reserves nothing: by its time the reservation comes too late. */
async function isRepeat(context: ApiContext, asked: AskedBatch): Promise<boolean> {
  const wanted = reservationOf(asked);
  if (wanted === null) return false;
  const found = await context.store().reserveKey({ ...wanted, not_after_ms: 0 });
  if (found.type !== 'too_late' && found.body_hash !== wanted.body_hash) throw usedWithAnotherBody();
  return found.type !== 'too_late';
}

async function reserve(context: ApiContext, asked: AskedBatch): Promise<void> {
  const wanted = reservationOf(asked);
  if (wanted === null) return;
  const store = context.store();
  const found = await store.reserveKey({ ...wanted, not_after_ms: await store.now() + context.settings.notAfterMs });
  if (found.type === 'too_late') throw unavailable('The store took too long; no run was created and none will be.');
  if (found.body_hash !== wanted.body_hash) throw usedWithAnotherBody();
}

/** Indexes of runs that go one after the other: those of a session, in their order; each other one by itself. */
function chainsOf({ runs }: BatchBody): number[][] {
  const chains = new Map<string, number[]>();
  runs.forEach(({ session_id }, index) => {
    const name = session_id ?? `run ${index}`;
    chains.set(name, [...chains.get(name) ?? [], index]);
  });
  return [...chains.values()];
}

async function checkSessions(context: ApiContext, { tenant, body }: AskedBatch): Promise<void> {
  const chains = chainsOf(body).filter(([first]) => body.runs[first!]!.session_id !== undefined);
  await eachOf(chains, async (chain) => {
    const session_id = body.runs[chain[0]!]!.session_id!;
    const session = await context.store().session(session_id);
    if (session?.tenant !== tenant) throw new Problem({ status: 404, code: 'not_found', detail: `runs.${chain[0]}: There is no such session, or it is not yours.`, errors: [{ path: `runs.${chain[0]}.session_id`, problem: 'unknown session' }] });
    chain.forEach((index, place) => {
      const behind = place > 0 ? `runs.${chain[place - 1]}` : session.current;
      if (behind === null || body.runs[index]!.on_busy !== 'reject') return;
      throw new Problem({ status: 409, code: 'session_busy', detail: `runs.${index}: The session would be busy with ${behind}. Say in on_busy what shall happen.`, errors: [{ path: `runs.${index}.session_id`, problem: `busy with ${behind}` }] });
    });
  });
}

async function createAll(context: ApiContext, asked: AskedBatch): Promise<readonly AcceptedRun[]> {
  const { tenant, body, idempotencyKey, traceparent } = asked;
  const bodies = (asked.rawBody as { readonly runs: readonly unknown[] }).runs;
  const accepted: AcceptedRun[] = [];
  let failure: { readonly index: number; readonly error: unknown } | null = null;
  await eachOf(chainsOf(body), async (chain) => {
    for (const index of chain) {
      if (failure !== null) return;
      try {
        accepted[index] = await acceptRun(context, {
          tenant, body: body.runs[index]!, rawBody: bodies[index], traceparent, idempotencyKey: idempotencyKey === undefined ? undefined : `batch\n${idempotencyKey}\n${index}`,
        });
      } catch (error) {
        failure ??= { index, error };
      }
    }
  });
  if (failure !== null) throw interrupted(failure, { some: accepted.some(() => true), again: againOf(asked) });
  return accepted;
}

/** What becomes of the batch when it is asked for again. */
function againOf({ idempotencyKey }: AskedBatch): string {
  return idempotencyKey === undefined ? 'Without an Idempotency-Key asking again makes these again.' : 'Asking again with the same Idempotency-Key and body answers these, and tries the rest.';
}

/** `some`: runs are there. */
function interrupted({ index, error: thrown }: { readonly index: number; readonly error: unknown }, { some, again }: { readonly some: boolean; readonly again: string }): unknown {
  const error = thrown instanceof StoreUnavailable || thrown instanceof ArchiveUnavailable ? problemOf(thrown) : thrown;
  if (!some || !(error instanceof Problem)) return placed(`runs.${index}`, error);
  if (error.statusCode === 503) return outcomeUnknown(`runs.${index}: ${error.message} Other runs of the batch were created. ${again}`, thrown);
  const { statusCode: status, code, headers } = error;
  return new Problem({
    status, code, headers, detail: `runs.${index}: ${error.message} Other runs of the batch were created. ${again}`,
    errors: [{ path: `runs.${index}`, problem: error.message }],
  });
}
