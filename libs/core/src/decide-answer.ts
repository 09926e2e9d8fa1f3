/**
 * Text without calls: it ends the run only after hooks and validators have spoken, and nobody has something to say first.
 */
import { parseAction } from './action.ts';
import { wishesOf } from './command.ts';
import { lookAhead } from './codec.ts';
import { joinPieces } from './continuation.ts';
import { endRun, turnEnd, type EndOptions } from './ending.ts';
import type { EventBody } from './events.ts';
import { pause } from './pausing.ts';
import { specOf, type RunState } from './state.ts';
import type { Decision, Judgement, ModelReplied, ModelReply } from './turn-input.ts';

/** What a reply would answer: continuations joined, in `json_action` what the action says. Hooks and validators judge this. */
export function answerOf(state: RunState, reply: Pick<ModelReply, 'text'>): string {
  return answerIn(state, joinPieces(state.pieces, reply.text.toWellFormed()));
}

/** The same of a text that the state already holds. */
export function answerIn(state: RunState, text: string): string {
  if (specOf(state).protocol !== 'json_action') return text;
  const action = parseAction(text, state.tools ?? []);
  return action.type === 'answer' ? action.text.toWellFormed() : '';
}

/** `events` hold the reply; its cost is among them. */
export function decideAnswer(state: RunState, input: ModelReplied, events: EventBody[]): Decision {
  const wishes = wishesOf(input.commands);
  const now = lookAhead(state, events);
  const end: EndOptions = { elapsed_s: input.elapsed_s, turn_open: true };
  if (wishes.cancel) return behind(events, endRun(now, 'interrupted', { ...end, before: wishes.events }));
  if (wishes.events.length > 0 || wishes.pause) {
    const closed = [...events, ...wishes.events, turnEnd(now, input.elapsed_s)];
    return wishes.pause ? pause(closed) : { events: closed, effect: { type: 'hand_over', delay_ms: 0 } };
  }
  return behind(events, judged(now, { judgement: input.judgement, end }));
}

/** The answer was there when the run was paused. */
export function finishAnswer(state: RunState, judgement: Judgement, events: readonly EventBody[]): Decision {
  return behind(events, judged(state, { judgement, end: { elapsed_s: 0, turn_open: false } }));
}

function behind(events: readonly EventBody[], decision: Decision): Decision {
  return { ...decision, events: [...events, ...decision.events] };
}

interface Judged { readonly judgement: Judgement; readonly end: EndOptions }

/** Of the text that the state holds as its candidate. */
function judged(state: RunState, { judgement, end }: Judged): Decision {
  const problem = actionProblem(state);
  if (problem !== null) return feedback(state, problem, end);
  const text = answerIn(state, state.candidate ?? '');
  const { events: spoken, goesOn } = hookEvents(state, judgement);
  if (goesOn) return goOn(state, spoken, end);
  const failed = judgement.checks.filter((check) => check.mode === 'enforce' && !check.ok);
  const [first] = failed;
  if (first !== undefined) {
    const words = failed.map((check) => check.feedback).join('\n');
    return behind(spoken, feedback(state, { validator_name: first.name, error_type: first.error_type, feedback: words }, end));
  }
  const checks = judgement.checks.map(({ name, ok, detail }) => ({ name, ok, detail }));
  const final: EventBody = {
    type: 'final_response', text, ...(judgement.output === null ? {} : { output: judgement.output }), ...(checks.length === 0 ? {} : { checks }) };
  return behind(spoken, endRun(state, 'answered', { ...end, before: [final] }));
}

/** Any `extra_turn` wins, then any `continue`; the winner alone has a prompt. Beyond the bound the answer stands. */
function hookEvents(state: RunState, { hooks }: Judgement): { readonly events: EventBody[]; readonly goesOn: boolean } {
  const allowed = state.extra_turns < state.limits.max_extra_turns;
  const winner = allowed ? hooks.find((hook) => hook.decision === 'extra_turn') ?? hooks.find((hook) => hook.decision === 'continue') : undefined;
  const events = hooks.map((hook): EventBody => ({
    type: 'stop_hook', hook: hook.hook, decision: hook.decision,
    prompt: hook === winner ? hook.prompt.toWellFormed().trim() || 'Please go on.' : hook.decision === 'skipped' ? hook.prompt : '',
  }));
  return { events, goesOn: winner !== undefined };
}

interface Rejection { readonly validator_name: string; readonly error_type: string; readonly feedback: string }

function actionProblem(state: RunState): Rejection | null {
  if (specOf(state).protocol !== 'json_action') return null;
  const action = parseAction(state.candidate ?? '', state.tools ?? []);
  if (action.type === 'problem') return { validator_name: 'action_parse', error_type: action.error_type, feedback: action.feedback };
  if (action.type !== 'answer' || action.text.trim() !== '') return null;
  return { validator_name: 'action_parse', error_type: 'non_empty_final_answer', feedback: 'The field "final_answer" must not be empty.' };
}

/** The model tries again, as often as it may. */
function feedback(state: RunState, { validator_name, error_type, feedback: words }: Rejection, end: EndOptions): Decision {
  const empty = error_type === 'non_empty_final_answer';
  const left = empty ? state.limits.max_reasks - state.reasks : state.limits.max_retries - state.retries;
  const event: EventBody = { type: 'validation_error', validator_name, error_type, feedback: words.toWellFormed(), retries_left: Math.max(0, left - 1) };
  if (left <= 0) return endRun(state, empty ? 'empty_answer' : 'validation_retries', { ...end, before: [event] });
  return goOn(state, [event], end);
}

function goOn(state: RunState, events: readonly EventBody[], end: EndOptions): Decision {
  const closed = end.turn_open ? [...events, turnEnd(state, end.elapsed_s)] : events;
  return { events: closed, effect: { type: 'hand_over', delay_ms: 0 } };
}
