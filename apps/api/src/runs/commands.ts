/**
 * What may be asked of a live run: accepted through its inbox; the worker that holds the run, or the next one, carries it out.
 *
 * 1. Everything that can be refused is refused before anything is written.
 * 2. The same Idempotency-Key is the same command, also after the run has ended; with other contents it is a conflict.
 * 3. Nothing happens after `not_after`, by the store's clock. 503 `unavailable` is answered only where the command had not been
 *    sent; else `outcome_unknown`.
 */
import { createHash } from 'node:crypto';
import { canonicalJson, isEnded, isWord, specOf, type Command, type Content, type RunState, type RunStatus } from '@treadle/core';
import type { RunDirectory, RunView } from '@treadle/engine';
import type { ApiContext } from '../dependencies.ts';
import { invalidRequest, notFound, outcomeUnknown, Problem, unavailable } from '../problem.ts';
import { StoreUnavailable } from '../store/unavailable.ts';
import { findRun, lookUp, type FoundRun } from './find.ts';
import { checkImages, limitsWithin } from './fitting.ts';

export interface AskedCommand {
  readonly tenant: string;
  readonly run_id: string;
  readonly command: Command;
  readonly idempotencyKey: string | undefined;
  /** What makes two requests with one key the same; default the command. */
  readonly contents?: unknown;
  /** Where the caller knows what makes two requests the same command. */
  readonly commandId?: string;
}

/** The run as it is once the command is durable. */
export async function commandRun(context: ApiContext, asked: AskedCommand): Promise<RunView> {
  const store = context.store();
  const { archive } = context.log;
  const { tenant, run_id, command, idempotencyKey } = asked;
  const found = await findRun({ store, archive }, tenant, run_id);
  // A repeat, or a second word, may come after the end; only the store knows that it is one.
  const mayRepeat = idempotencyKey !== undefined || isWord(command);
  if (isEnded(found.view.status) && (found.from === 'archive' || !mayRepeat)) throw refused(found.view.status);
  if (found.from === 'store') checkCommand(found.state, command);
  const not_after_ms = await store.now() + context.settings.notAfterMs;
  const command_id = idempotencyKey === undefined ? asked.commandId ?? context.deps.random.uuid() : await reservedId(store, asked, { key: idempotencyKey, not_after_ms });
  const reply = await store.command({ run_id, command_id, command, not_after_ms }).catch((error: unknown) => { throw unclear(error); });
  switch (reply.type) {
    case 'accepted': return (await now({ store, archive }, asked)) ?? found.view;
    case 'invalid_state': throw refused(reply.status);
    case 'behind': throw new Problem({ status: 409, code: 'invalid_state', detail: `${reply.run_id} of the same session goes before it: resume, resolve or cancel that one, and this one follows.` });
    case 'already_decided': throw new Problem({ status: 409, code: 'already_decided', detail: 'Somebody has decided about this call before; the first word counts.' });
    case 'missing': throw notFound();
    case 'inbox_full':
      throw new Problem({ status: 429, code: 'rate_limited', detail: 'Too many commands wait for this run.', headers: { 'retry-after': '1' } });
    case 'too_late': throw tooLate();
  }
}

/** It has been accepted: a look that fails must not turn that into an error. */
async function now(deps: Parameters<typeof lookUp>[0], { tenant, run_id }: AskedCommand): Promise<FoundRun['view'] | null> {
  const found = await lookUp(deps, tenant, run_id).catch(() => null);
  return found?.view ?? null;
}

/** By the spec that the run was made with, whatever the configuration says today. */
function checkCommand(state: RunState, command: Command): void {
  if (command.type === 'update' && command.limits !== undefined) limitsWithin(specOf(state).limits, command.limits);
  if (command.type === 'resume') checkResume(state, command.input);
}

/** A question wants an answer, which is the result of a call: text. */
function checkResume(state: RunState, input: Content | undefined): void {
  const asked = state.pause_reason === 'input';
  if (asked && input === undefined) throw invalidRequest([{ path: 'input', problem: 'is missing: the run waits for the answer to a question' }]);
  if (input === undefined) return;
  if (asked && typeof input !== 'string' && input.some((part) => part.type === 'image')) throw invalidRequest([{ path: 'input', problem: 'an answer to a question has no images' }]);
  checkImages(specOf(state), input);
}

/**
 * The same id for the same key, whoever asks again and wherever. What the key stands for is kept beside it: a repeat with other
 * contents would otherwise be answered as accepted and never happen.
 */
async function reservedId(store: RunDirectory, { tenant, run_id, command, contents }: AskedCommand, asked: { readonly key: string; readonly not_after_ms: number }): Promise<string> {
  const body_hash = sha256(canonicalJson(contents === undefined ? command : [command.type, contents]));
  // A line break keeps it apart from keys of new runs, which hold printable characters alone.
  const key = `command\n${run_id}\n${asked.key}`;
  const reply = await store.reserveKey({ tenant, key, run_id, body_hash, not_after_ms: asked.not_after_ms });
  if (reply.type === 'too_late') throw tooLate();
  if (reply.body_hash !== body_hash) throw new Problem({ status: 409, code: 'idempotency_conflict', detail: 'This Idempotency-Key was used with another command for this run.' });
  return `key_${sha256(canonicalJson([tenant, run_id, asked.key]))}`;
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

export function refused(status: RunStatus): Problem {
  return new Problem({ status: 409, code: 'invalid_state', detail: isEnded(status) ? `The run has ended (${status}).` : `The run (${status}) cannot take this now.` });
}

function tooLate(): Problem {
  return unavailable('The store took too long; the command was not accepted and will not be by this request.');
}

function unclear(error: unknown): unknown {
  if (!(error instanceof StoreUnavailable) || !error.sent) return error;
  return outcomeUnknown('The store did not say whether the command was accepted. Look at the run, or ask again with the same Idempotency-Key.', error);
}
