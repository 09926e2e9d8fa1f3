/**
 * Calls of `ask_user`: nothing carries them out. When nothing else of the batch is left, the run waits for a person's answer, which is
 * the result of the call.
 */
import { waitsForApproval } from './approval.ts';
import type { EventBody, PendingCall } from './events.ts';
import type { Content } from './message.ts';
import { pause } from './pausing.ts';
import type { OpenCall, RunState } from './state.ts';
import type { Decision } from './turn-input.ts';
import { capText } from './well-formed.ts';

function isQuestion(state: RunState, call: OpenCall): boolean {
  return call.invalid === null && state.tools?.find((tool) => tool.name === call.tool_name)?.builtin === 'ask_user';
}

/** The open calls that somebody has to carry out: none, while one of them waits for approval. */
export function runnableCalls(state: RunState): OpenCall[] {
  if (waitsForApproval(state)) return [];
  return state.calls.filter((call) => !call.settled && !isQuestion(state, call));
}

/** Goes on with the open calls of `state`, which is the state after `events`; there must be some, and none that waits for approval. */
export function goOnWithCalls(state: RunState, events: readonly EventBody[], active_s: number): Decision {
  if (runnableCalls(state).length > 0) return { events, effect: { type: 'settle_tool_calls' } };
  const pending = state.calls.filter((call) => !call.settled)
    .map(({ tool_use_id, tool_name, tool_input }): PendingCall => ({ kind: 'input', tool_use_id, tool_name, tool_input, expires_at: null }));
  return pause(events, active_s, { reason: 'input', pending });
}

export function questionsOf({ pending }: RunState): readonly PendingCall[] {
  return pending.filter((call) => call.kind === 'input');
}

/** The answers, each as the result of the question at its place. */
export function answered(state: RunState, answers: readonly Content[]): EventBody[] {
  return questionsOf(state).flatMap(({ tool_use_id, tool_name }, index): EventBody[] => {
    const answer = answers[index];
    if (answer === undefined) return [];
    const said = typeof answer === 'string' ? answer : answer.map((part) => part.type === 'text' ? part.text : '').join('\n');
    const { text, truncated_bytes } = capText(said, state.limits.max_observation_bytes);
    return [{ type: 'tool_result', tool_use_id, tool_name, content: text, is_error: false, duration: 0, ...(truncated_bytes > 0 ? { truncated_bytes } : {}) }];
  });
}
