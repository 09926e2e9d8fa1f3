/**
 * The archive is folded again and held against what it says a run came to: a log that no longer gives its state is found before
 * somebody needs it.
 */
import { canonicalJson, decodeEvent, evolve, initialState, InvariantBroken, type RunState } from '@treadle/core';
import type { Archive } from './ports/archive.ts';
import { archivedDocument } from './run-view.ts';

/** `failed`: the log could not be read whole, or does not fold. Null: there is nothing to compare (any more). */
export type AuditResult = { readonly result: 'identical' } | { readonly result: 'different'; readonly fields: readonly string[] } | { readonly result: 'failed'; readonly problem: string };

export async function auditRun(archive: Pick<Archive, 'events' | 'getRun'>, run_id: string): Promise<AuditResult | null> {
  const text = await archive.getRun(run_id);
  if (text === null) return null;
  const { tenant, ...document } = JSON.parse(text) as Readonly<Record<string, unknown>> & { readonly last_seq: number; readonly tenant: string };
  let state: RunState = { ...initialState, run_id };
  try {
    while (state.last_seq < document.last_seq) {
      const page = await archive.events(run_id, state.last_seq, 500);
      if (page.length === 0) return { result: 'failed', problem: `event ${state.last_seq + 1} is missing` };
      for (const line of page) state = evolve(state, decodeEvent(line));
    }
  } catch (error) {
    if (!(error instanceof InvariantBroken || error instanceof SyntaxError)) throw error;
    return { result: 'failed', problem: error.message };
  }
  const view = JSON.parse(archivedDocument(state, document.last_seq, state.tenant)) as Readonly<Record<string, unknown>>;
  const stored: Readonly<Record<string, unknown>> = { ...document, archived_seq: document.last_seq, tenant };
  // What was archived before there were sub-agents says nothing of them.
  const fields = [...new Set([...Object.keys(view), ...Object.keys(stored)])].filter((field) => (field !== 'children' || field in stored) && canonicalJson(view[field]) !== canonicalJson(stored[field]));
  return fields.length === 0 ? { result: 'identical' } : { result: 'different', fields };
}
