/**
 * Calls that were started and nobody knows how they went. A tool's `on_unknown` says who speaks: the host, which tells the model
 * that it may or may not have happened; or a person, for whom the run waits. A resumed run waits no longer: the host speaks.
 */
import type { OutcomeCommand } from './command.ts';
import type { EventBody, PendingCall } from './events.ts';
import { callFingerprint } from './fingerprint.ts';
import type { RunState } from './state.ts';
import type { SettledCall } from './turn-input.ts';

/** The calls among `results` that a person has to decide about. */
export function asked(state: RunState, results: readonly SettledCall[]): readonly PendingCall[] {
  const unknown = new Set(results.flatMap((result) => result.outcome === 'unknown' ? [result.tool_use_id] : []));
  return state.calls.filter((call) => !call.settled && unknown.has(call.tool_use_id) && asks(state, call.tool_name))
    .map(({ tool_use_id, tool_name, tool_input }) => ({ kind: 'outcome', tool_use_id, tool_name, tool_input, expires_at: null }));
}

function asks(state: RunState, tool_name: string): boolean {
  return state.tools?.find((tool) => tool.name === tool_name)?.on_unknown === 'ask';
}

/** What the words come to: of each pending call the first, and the result that the model gets by it. */
export function resolved(state: RunState, words: readonly OutcomeCommand[]): EventBody[] {
  return state.pending.filter((call) => call.kind === 'outcome').flatMap((call): EventBody[] => {
    const word = words.find((each) => each.tool_use_id === call.tool_use_id);
    if (word === undefined) return [];
    const { tool_use_id, tool_name } = call;
    const happened = word.outcome === 'happened';
    const content = word.content?.toWellFormed() ?? (happened ? notes.happened : notes.did_not_happen);
    return [
      { type: 'outcome_resolved', tool_use_id, digest: callFingerprint(tool_name, call.tool_input, state.rules), decision: word.outcome, by: word.by, reason: null },
      { type: 'tool_result', tool_use_id, tool_name, content, is_error: !happened, duration: 0, ...(happened ? {} : { outcome: 'not_started' as const }) },
    ];
  });
}

const notes = {
  happened: 'An operator has confirmed that this call happened. Nothing more is known of its result.',
  did_not_happen: 'An operator has confirmed that this call did not happen. Make it again if it is still needed.',
  unknown: 'The outcome of this call is unknown: it may or may not have happened. It was not repeated. Check before you try again.',
} as const;

/** Nobody will speak of these any more. `begun` has the ledger's words, where it has any. */
export function unresolved(pending: readonly PendingCall[], begun: readonly SettledCall[]): EventBody[] {
  return pending.map(({ tool_use_id, tool_name }) => ({
    type: 'tool_result', tool_name,
    ...(begun.find((each) => each.tool_use_id === tool_use_id) ?? { tool_use_id, content: notes.unknown, is_error: true, duration: 0, outcome: 'unknown' as const }),
  }));
}
