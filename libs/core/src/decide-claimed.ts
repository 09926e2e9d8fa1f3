/**
 * A delivery has taken the run: what an earlier one left behind is in the state, and tells where to go on.
 */
import { approvalsResolved, overdueApprovals, waitingForApproval } from './approval.ts';
import { awaitApproval } from './await-approval.ts';
import { wishesOf, type Wishes } from './command.ts';
import { finishAnswer } from './decide-answer.ts';
import { callModel } from './decide-call.ts';
import { decideSettled } from './decide-settled.ts';
import { chooseModel } from './choose-model.ts';
import { boundedHistory } from './history.ts';
import { lookAhead } from './codec.ts';
import { resolved, unresolved } from './doubt.ts';
import { closingResults, endRun, type EndOptions } from './ending.ts';
import type { EventBody } from './events.ts';
import { limitDue } from './limit-due.ts';
import { longestWaitMs, park, pause } from './pausing.ts';
import { answered, goOnWithCalls, questionsOf } from './questions.ts';
import type { RunState } from './state.ts';
import type { Decision, TurnClaimed } from './turn-input.ts';

export function decideClaimed(state: RunState, input: TurnClaimed): Decision {
  const wishes = wishesOf(input.commands, questionsOf(state).length);
  const words = [...resolved(state, wishes.words), ...approvalsResolved(state, wishes.decisions), ...answered(state, wishes.answers)];
  const told = lookAhead(state, words);
  const closing: EndOptions = { elapsed_s: 0, turn_open: state.turn_open, before: [...words, ...wishes.events, ...closingResults(told, input.begun)] };
  if (wishes.cancel) return endRun(state, 'interrupted', closing);
  if (input.lost !== undefined) return endRun(state, 'state_lost', closing);
  const woken = state.resumes_at !== null && input.wait_ms <= 0;
  const resumes = wishes.resume || woken || isOver(told, words.length > 0);
  if (state.status === 'paused' && !resumes) return stayPaused(told, { wishes, words, wait_ms: input.wait_ms });
  if (input.deliveries > input.poison_limit) return endRun(state, 'poisoned', closing);
  if (input.nudges > input.nudge_limit) return endRun(state, 'infrastructure', closing);

  const events: EventBody[] = [...words, ...unresolved(told.pending.filter((call) => call.kind === 'outcome'), input.begun), ...wishes.events];
  if (state.status !== 'running') {
    events.unshift({ type: 'state_change', old: state.status, new: 'running', reason: state.status === 'paused' ? 'resumed' : 'claimed' });
  }
  if (wishes.pause) return pause(events, 0, { reason: 'requested', pending: waitingForApproval(told) });
  // What woke it is in the log now; what it waits for (a provider's Retry-After) has not come yet.
  // Nothing is asked of a provider where a reply is there.
  if (input.wait_ms > 0 && state.status === 'running' && state.calls.length === 0) return { events, effect: { type: 'hand_over', delay_ms: input.wait_ms } };

  const now = lookAhead(state, events);
  if (now.candidate !== null && !now.turn_open) return finishAnswer(now, input.judgement, events);
  if (state.turn_open && now.active_s >= now.limits.session_timeout_s) {
    const before = closingResults(now, input.begun);
    return behind(events, endRun(now, 'session_timeout', { ...closing, before }));
  }
  if (!state.turn_open) return behind(events, newTurn(now, input));
  const overdue = overdueApprovals(now, woken ? wokenAt(state.resumes_at, input.now_s) : input.now_s);
  const left = lookAhead(now, overdue.events);
  if (!overdue.ends) return behind([...events, ...overdue.events], takeOver(left, input));
  return behind([...events, ...overdue.events], endRun(left, 'approval_timeout', { ...closing, before: closingResults(left, input.begun) }));
}

/** Epoch seconds. The store's clock has woken the run: by this worker's own the time may not quite have come. Where it is far off, somebody else has put the run off meanwhile. */
function wokenAt(resumes_at: string, now_s: number): number {
  const due_s = Date.parse(resumes_at) / 1000;
  return due_s - now_s < 1 ? Math.max(due_s, now_s) : now_s;
}

/** Whether what the run was paused for has come: the last word on its calls, the end of the last run that is waited for. */
function isOver({ pause_reason, pending }: RunState, spoken: boolean): boolean {
  if (pause_reason === 'outcome') return spoken && !pending.some((call) => call.kind === 'outcome');
  if (pause_reason === 'approval') return spoken && !pending.some((call) => call.kind === 'approval');
  return pause_reason === 'children' && !pending.some((call) => call.kind === 'child_run');
}

/** A pause that a person asks for while the run waits for a word outlasts the word. */
function stayPaused(told: RunState, { wishes, words, wait_ms }: { readonly wishes: Wishes; readonly words: readonly EventBody[]; readonly wait_ms: number }): Decision {
  const events = [...words, ...wishes.events];
  if (!wishes.pause && told.resumes_at !== null) return { events, effect: { type: 'pause', delay_ms: wait_ms } };
  if (!wishes.pause || told.pause_reason === 'requested') return { events, effect: { type: 'pause' } };
  return pause([...events, { type: 'state_change', old: 'paused', new: 'running', reason: 'resumed' }], 0, { reason: 'requested', pending: told.pending });
}

function behind(events: readonly EventBody[], decision: Decision): Decision {
  return { ...decision, events: [...events, ...decision.events] };
}

/** An earlier delivery of this turn is gone. With its reply in the log the model is not asked again. */
function takeOver(state: RunState, input: TurnClaimed): Decision {
  const start: EventBody = { type: 'turn_start', attempt: state.attempt + 1, worker: input.worker };
  if (state.calls.length === 0) return ask(state, [...pinning(input), start], input);
  if (state.calls.some((call) => !call.settled)) {
    const decision = awaitApproval(state, [], { active_s: 0, now_s: input.now_s }) ?? goOnWithCalls(state, [], 0);
    return decision.effect.type === 'settle_tool_calls' ? { ...decision, events: [start] } : decision;
  }
  // What the results mean for the run is the same whoever brought them.
  return behind([start], decideSettled(lookAhead(state, [start]), { type: 'tool_calls_settled', results: [], elapsed_s: 0, timed_out: null, commands: [] }));
}

function newTurn(state: RunState, input: TurnClaimed): Decision {
  const due = limitDue(state);
  if (due !== null) return endRun(state, due, { elapsed_s: 0, turn_open: false });
  return ask(state, [...history(state, input), ...pinning(input), ...changed(state, input), { type: 'turn_start', attempt: 1, worker: input.worker }], input);
}

/** Where the model's rates have no room yet the run waits, and no turn begins. */
function ask(state: RunState, opening: readonly EventBody[], { unavailable, prices, room_ms, now_s }: TurnClaimed): Decision {
  if (room_ms === 0 || chooseModel(state, { unavailable, prices }).type !== 'model') return callModel(state, opening, { unavailable, prices });
  if (room_ms <= longestWaitMs) return { events: [], effect: { type: 'hand_over', delay_ms: room_ms } };
  return park(state, [], { reason: 'quota', until_s: now_s + room_ms / 1000, wait_ms: room_ms });
}

function history(state: RunState, input: TurnClaimed): EventBody[] {
  if (input.history === null || state.turn_number > 0 || state.history_from !== null) return [];
  const { from_run_id, messages } = input.history;
  return [{ type: 'session_history', from_run_id, generation: state.transcript.generation + 1, messages: boundedHistory(messages) }];
}

/** A server that changes without end is not followed for ever. */
const mostToolChanges = 50;

function changed({ tool_news }: RunState, { tool_changes }: TurnClaimed): EventBody[] {
  if (tool_changes === undefined || tool_changes === null || (tool_news?.changes ?? 0) >= mostToolChanges) return [];
  return [{ type: 'tools_changed', done: 'changed', ...tool_changes }];
}

function pinning(input: TurnClaimed): EventBody[] {
  return input.tools === null ? [] : [{ type: 'tools_changed', tools: input.tools, problems: input.tool_problems, done: 'pinned', ...(input.tool_problems.length === 0 ? {} : { remembered: true as const }), ...(input.server_instructions === undefined ? {} : { instructions: input.server_instructions }) }];
}
