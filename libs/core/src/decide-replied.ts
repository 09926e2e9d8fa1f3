/**
 * The model has replied: with calls, with an answer, or with nothing that can be used.
 */
import { parseAction } from './action.ts';
import { approvalsRequested, waitingForApproval } from './approval.ts';
import { awaitApproval } from './await-approval.ts';
import { plannedChildren, reserved } from './children.ts';
import { wishesOf } from './command.ts';
import { lookAhead } from './codec.ts';
import { decideAnswer } from './decide-answer.ts';
import { decideFailed } from './decide-failed.ts';
import { decideSettled } from './decide-settled.ts';
import { endRun, notStarted } from './ending.ts';
import type { EventBody } from './events.ts';
import { budgetDue } from './limit-due.ts';
import { pause } from './pausing.ts';
import { goOnWithCalls } from './questions.ts';
import { imageTokens } from './request.ts';
import { specOf, type RunState } from './state.ts';
import { toolUses } from './tool-call.ts';
import type { Decision, ModelReplied, ModelReply } from './turn-input.ts';

/** In `json_action` the text is read as an action: a call becomes a call like any other. */
export function interpreted(state: RunState, reply: ModelReply): ModelReply {
  if (specOf(state).protocol !== 'json_action' || reply.finish === 'length' || reply.text.trim() === '') return reply;
  const action = parseAction(reply.text, state.tools ?? []);
  const calls = action.type === 'call' ? [{ provider_id: null, name: action.name, input: action.input, problem: action.problem ?? null }] : [];
  return { ...reply, calls, action };
}

export function decideReplied(state: RunState, input: ModelReplied): Decision {
  const { reply } = input;
  const failure = unusable(state, input);
  if (failure !== null) return failure;
  const wishes = wishesOf(input.commands);
  const events = replyEvents(state, input);
  if (reply.calls.length === 0) return decideAnswer(state, input, events);

  const uses = events.filter((event) => event.type === 'tool_use');
  const budget = budgetDue(lookAhead(state, events));
  const spent = state.tool_calls + uses.length + reserved(state).tool_calls > state.limits.tool_budget ? 'tool_budget' : budget;
  if (wishes.cancel || spent !== null) {
    const results = uses.map((use): EventBody => ({ type: 'tool_result', tool_name: use.tool_name, ...notStarted(use.tool_use_id) }));
    const before = [...events, ...results, ...wishes.events];
    return endRun(state, wishes.cancel || spent === null ? 'interrupted' : spent, { elapsed_s: input.elapsed_s, usage: reply.usage, before, turn_open: true });
  }
  events.push(...plannedChildren(lookAhead(state, events), input.children ?? {}, lookAhead));
  const now = lookAhead(state, events);
  // Where nothing could be started nothing is left to be done.
  if (now.calls.every((call) => call.settled)) {
    const { commands, elapsed_s } = input;
    const ended = decideSettled(now, { type: 'tool_calls_settled', results: [], timed_out: null, commands, elapsed_s });
    return { ...ended, events: [...events, ...ended.events] };
  }
  const requested = approvalsRequested(now, input.approvals ?? {}, input.now_s);
  events.push(...requested, ...wishes.events);
  const open = lookAhead(now, requested);
  if (wishes.pause) return pause(events, input.elapsed_s, { reason: 'requested', pending: waitingForApproval(open) });
  return awaitApproval(open, events, { active_s: input.elapsed_s, now_s: input.now_s }) ?? goOnWithCalls(open, events, input.elapsed_s);
}

/** A reply that says nothing, that its limit cut, or that was made from half of the conversation is a failure with a name. */
function unusable(state: RunState, input: ModelReplied): Decision | null {
  const { reply } = input;
  const thought = replyEvents(state, { ...input, reply: { ...reply, text: '', calls: [] }, shown_text: '' });
  const fail = (error_type: 'output_truncated' | 'empty_response' | 'context_overflow' | 'tool_call_malformed', detail: string, keeps = false): Decision => decideFailed(state, {
    type: 'model_failed', unavailable: input.unavailable, prices: input.prices, now_s: input.now_s, elapsed_s: input.elapsed_s, timed_out: null, jitter: 0, commands: input.commands,
    failure: { error_type, detail, retry_after_s: null, partial_text: keeps ? reply.text : '', usage: reply.usage },
  }, keeps ? replyEvents(state, { ...input, reply: { ...reply, calls: [] } }) : thought);

  const truncated = contextTruncated(state, reply);
  if (truncated !== null && !state.reactive_tried) {
    const decision = fail('context_overflow', 'the provider cut off a part of the conversation');
    return { ...decision, events: [truncated, ...decision.events] };
  }
  if (reply.calls.length > mostCalls) return fail('tool_call_malformed', `the reply held ${reply.calls.length} tool calls; at most ${mostCalls} are taken`);
  // With calls the text is not kept: they are asked for again as a whole.
  if (reply.finish === 'length') return fail('output_truncated', reply.calls.length > 0 ? 'a tool call was cut at the output limit' : 'the reply was cut at the output limit', reply.calls.length === 0 && reply.text.trim() !== '');
  if (reply.calls.length > 0 || reply.text.trim() !== '') return null;
  return fail('empty_response', 'the reply held no text and no tool call');
}

/** Of one reply. Budgets bound what is run; this bounds what is written down. */
const mostCalls = 512;

/** Far fewer tokens than were sent: the server has cut the front off, and says nothing about it. */
function contextTruncated(state: RunState, reply: ModelReply): EventBody | null {
  const counted_tokens = reply.usage.input_tokens;
  const { estimated_tokens, model } = state;
  if (model === null || counted_tokens === 0) return null;
  // A small image costs next to nothing, so images prove nothing.
  const certain = estimated_tokens - imageTokens(state, model);
  return certain > 2000 && counted_tokens < 0.35 * certain ? { type: 'context_truncated', model, estimated_tokens, counted_tokens } : null;
}

/** Thinking, text, calls: in this order, the reply's cost on the first that carries it. */
function replyEvents(state: RunState, input: ModelReplied): EventBody[] {
  const { reply } = input;
  const events: EventBody[] = [];
  const text = reply.text.toWellFormed();
  if (reply.thinking !== '' || reply.provider_data !== null) {
    events.push({ type: 'assistant_thinking', content: reply.thinking.toWellFormed(), provider_data: reply.provider_data });
  }
  if (input.shown_text !== '' && input.shown_text !== text && text.startsWith(input.shown_text)) {
    events.push({ type: 'assistant_text', content: text.slice(input.shown_text.length), is_final: false, attempt: state.attempt });
  }
  if (text.trim() !== '') events.push({ type: 'assistant_text', content: text, is_final: true, attempt: state.attempt, usage: reply.usage });
  const [first, ...rest] = toolUses(state, reply.calls);
  if (first !== undefined) events.push(text.trim() === '' ? { ...first, usage: reply.usage } : first, ...rest);
  return events;
}
