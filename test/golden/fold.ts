/** What a golden log folds to, field by field, as hashes: a fold that changes is told by the field in which it does. */
import { createHash } from 'node:crypto';
import { canonicalJson, decodeEvent, evolve, initialState, type RunState } from '@treadle/core';

export type FoldedHashes = Readonly<Record<string, string>>;

export function foldedHashes(log: string): FoldedHashes {
  let state: RunState = initialState;
  for (const line of log.split('\n').filter((each) => each !== '')) {
    const event = decodeEvent(line);
    state = evolve(state.run_id === '' ? { ...state, run_id: event.run_id } : state, event);
  }
  return Object.fromEntries(Object.entries(state).map(([field, value]) => [field, createHash('sha256').update(canonicalJson(value) ?? 'undefined').digest('hex').slice(0, 16)]));
}
