/** What can be said of a run beyond its own record: transcript, ledger, replay. From the store, or from the archived log. */
import { canonicalJson, InvariantBroken, isEnded, modelRequest, specOf, type LedgerEntry, type Message, type RunState } from '@treadle/core';
import { foldLog, LedgerOfLog, replayRun, runView, wholeLog, type LogDeps, type ReplayReport } from '@treadle/engine';
import type { ApiContext } from '../dependencies.ts';
import type { FoundRun } from './find.ts';

export interface Transcript {
  /** The model that is asked next. */
  readonly model: string;
  readonly system: string;
  readonly data: readonly Readonly<Record<string, unknown>>[];
  readonly next_cursor: null;
}

/** As the model would next see it. What the host said stands as a user message with a `note`. */
export async function transcriptOf(log: LogDeps, found: FoundRun): Promise<Transcript> {
  const state = await stateOf(log, found);
  const { models } = specOf(state).chain;
  const model = models[state.position] ?? models[0];
  if (model === undefined) throw new InvariantBroken('a chain is never empty');
  const request = modelRequest(state, model);
  return { model: model.name, system: request.system, data: request.messages.map(shown), next_cursor: null };
}

/** Without what only the run's own edits go by. */
function shown(kept: Message & { readonly seq?: number }): Readonly<Record<string, unknown>> {
  const { seq: _, ...message } = kept;
  return message.role === 'host' ? { ...message, role: 'user' } : message;
}

async function stateOf(log: LogDeps, found: FoundRun): Promise<RunState> {
  return found.from === 'store' ? found.state : foldLog(log, found.view.id);
}

export type ShownLedgerEntry = Omit<LedgerEntry, 'status'> & { readonly status: 'started' | 'settled' | 'in_doubt' };

/** Every call that was begun. */
export async function ledgerOf(context: ApiContext, found: FoundRun): Promise<readonly ShownLedgerEntry[]> {
  const { view } = found;
  const entries = found.from === 'store' ? await context.store().ledger(view.id) : null;
  const epoch = found.from === 'store' ? found.state.epoch : Number.MAX_SAFE_INTEGER;
  const known = entries ?? await ledgerFromLog(context.log, view.id);
  const pending = found.from === 'store' ? found.state.pending.map((call) => call.tool_use_id) : [];
  return known.map((entry) => ({ ...entry, status: pending.includes(entry.tool_use_id) ? 'in_doubt' : statusOf(entry, isEnded(view.status) ? Number.MAX_SAFE_INTEGER : epoch) }));
}

/** In doubt: settled as unknown, or started by a claim that is no longer the run's. */
function statusOf(entry: LedgerEntry, epoch: number): ShownLedgerEntry['status'] {
  if (entry.status === 'settled') return entry.outcome === 'unknown' ? 'in_doubt' : 'settled';
  return entry.started_epoch < epoch ? 'in_doubt' : 'started';
}

/** The ledger leaves the store with its run; the log says the same. */
async function ledgerFromLog(log: LogDeps, run_id: string): Promise<readonly LedgerEntry[]> {
  const ledger = new LedgerOfLog();
  for await (const { event } of wholeLog(log, run_id)) ledger.take(event);
  return ledger.entries;
}

/** Folds the log again. A run that has left the store is compared with what the archive says it came to. */
export async function replay(log: ApiContext['log'], found: FoundRun): Promise<ReplayReport> {
  try {
    const stored = found.from === 'store' ? await replayRun(log, found.view.id) : null;
    return stored ?? await replayArchived(log, found);
  } catch (error) {
    if (!(error instanceof InvariantBroken)) throw error;
    return { identical: false, events: found.view.last_seq, differences: [{ field: 'log', stored: 'valid', replayed: error.message }] };
  }
}

async function replayArchived(log: LogDeps, { view }: FoundRun): Promise<ReplayReport> {
  const state = await foldLog(log, view.id);
  const replayed: Readonly<Record<string, unknown>> = runView(state, view.last_seq);
  const stored: Readonly<Record<string, unknown>> = { ...view, archived_seq: view.last_seq };
  const fields = [...new Set([...Object.keys(stored), ...Object.keys(replayed)])];
  const differences = fields.filter((field) => canonicalJson(stored[field]) !== canonicalJson(replayed[field]))
    .map((field) => ({ field, stored: stored[field] ?? null, replayed: replayed[field] ?? null }));
  return { identical: differences.length === 0, events: state.last_seq, differences };
}
