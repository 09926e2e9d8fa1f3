/**
 * Calls that need a person's word before they are begun. The whole batch of a reply waits until each of them has one; a call and
 * its word are facts of the log, so whoever takes the run over never asks again.
 *
 * 1  A word is about one call with its arguments: it names the digest that was asked about. A word on anything else says nothing.
 * 2  Of several words the first counts.
 * 3  A denied call has its result at once, and is never begun. An approved one is carried out as it was approved, and as such the
 *    model sees it.
 * 4  What nobody decides about in time is denied, or ends the run, as its tool says.
 */
import { InvariantBroken } from './assert-never.ts';
import type { ApprovalCommand } from './command.ts';
import type { ApprovalRequested, ApprovalResolved, EventBody, PendingCall } from './events.ts';
import { own } from './own.ts';
import type { OpenCall, RunState } from './state.ts';
import { wellFormed } from './well-formed.ts';

type Waiting = OpenCall & { readonly approval: NonNullable<OpenCall['approval']> };

function waitingCalls(state: RunState): Waiting[] {
  return state.calls.filter((call): call is Waiting => !call.settled && call.approval?.state === 'waiting');
}

export function waitsForApproval(state: RunState): boolean {
  return waitingCalls(state).length > 0;
}

/** The calls that a paused run shows as waiting. */
export function waitingForApproval(state: RunState): PendingCall[] {
  return waitingCalls(state).map(({ tool_use_id, tool_name, tool_input, approval: { expires_at, digest } }) =>
    ({ kind: 'approval', tool_use_id, tool_name, tool_input, expires_at, digest }));
}

/** Of a reply's calls those that need a word, by their digests. A call that no tool can take needs none. */
export function approvalsRequested(state: RunState, digests: Readonly<Record<string, string>>, now_s: number): ApprovalRequested[] {
  return state.calls.flatMap(({ settled, invalid, tool_use_id, tool_name }): ApprovalRequested[] => {
    const digest = settled || invalid !== null ? undefined : own(digests, tool_use_id);
    if (digest === undefined) return [];
    const timeout_s = ruleOf(state, tool_name)?.timeout_s ?? null;
    const expires_at = timeout_s === null ? null : new Date(Math.ceil((now_s + timeout_s) * 1000)).toISOString();
    return [{ type: 'approval_requested', tool_use_id, tool_name, digest, expires_at }];
  });
}

function ruleOf(state: RunState, tool_name: string) {
  return state.tools?.find((tool) => tool.name === tool_name)?.approval;
}

/** What people's words come to: of each waiting call the first that is about it. */
export function approvalsResolved(state: RunState, words: readonly ApprovalCommand[]): EventBody[] {
  return waitingCalls(state).flatMap((call): EventBody[] => {
    const { tool_use_id, approval: { digest } } = call;
    const word = words.find((each) => each.tool_use_id === tool_use_id && each.digest === digest);
    if (word === undefined) return [];
    const { decision, by, changed } = word;
    const reason = word.reason?.toWellFormed() ?? null;
    const instead = decision === 'deny' || changed === undefined ? {} : { input: wellFormed(changed.input), new_digest: changed.digest };
    const resolved: EventBody = { type: 'approval_resolved', tool_use_id, digest, decision, by: by.toWellFormed(), reason, ...instead };
    return decision === 'approve' ? [resolved] : [resolved, denied(call, `A person has denied this call; it was not carried out.${reason === null ? '' : ` Reason: ${reason}`}`)];
  });
}

function denied({ tool_use_id, tool_name }: OpenCall, content: string): EventBody {
  return { type: 'tool_result', tool_use_id, tool_name, content, is_error: true, duration: 0, outcome: 'denied' };
}

export interface Overdue {
  readonly events: readonly EventBody[];
  /** Whether a tool among them wants the run to end. */
  readonly ends: boolean;
}

/** The calls whose time is over: the host speaks. */
export function overdueApprovals(state: RunState, until_s: number): Overdue {
  const late = waitingCalls(state).filter(({ approval: { expires_at } }) => expires_at !== null && Date.parse(expires_at) <= until_s * 1000);
  return {
    ends: late.some((call) => ruleOf(state, call.tool_name)?.on_timeout === 'expire'),
    events: late.flatMap((call): EventBody[] => [
      { type: 'approval_resolved', tool_use_id: call.tool_use_id, digest: call.approval.digest, decision: 'deny', by: 'host', reason: 'Nobody decided in time.' },
      denied(call, 'Nobody approved of this call in time; it was not carried out.')]),
  };
}

/** Epoch seconds at which the first of them is overdue; null where none ever is. */
export function firstDeadline(state: RunState): number | null {
  const times = waitingCalls(state).flatMap(({ approval: { expires_at } }) => expires_at === null ? [] : [Date.parse(expires_at) / 1000]);
  return times.length === 0 ? null : Math.min(...times);
}

export function approvalRequested(state: RunState, { tool_use_id, digest, expires_at }: ApprovalRequested): Partial<RunState> {
  const index = state.calls.findIndex((call) => call.tool_use_id === tool_use_id);
  const call = state.calls[index];
  if (call === undefined || call.settled || call.approval !== undefined) throw new InvariantBroken(`approval of ${tool_use_id}, which is not open or was asked about`);
  return { calls: state.calls.with(index, { ...call, approval: { state: 'waiting', digest, expires_at } }) };
}

export function approvalResolved(state: RunState, event: ApprovalResolved): Partial<RunState> {
  const { tool_use_id, digest, decision, input } = event;
  const index = state.calls.findIndex((call) => call.tool_use_id === tool_use_id);
  const call = state.calls[index];
  if (call?.approval?.state !== 'waiting' || call.settled) throw new InvariantBroken(`a word on ${tool_use_id}, which waits for none`);
  if (call.approval.digest !== digest) throw new InvariantBroken(`a word on ${tool_use_id} with other arguments`);
  const approval = { ...call.approval, state: decision === 'approve' ? 'approved' : 'denied', digest: event.new_digest ?? digest } as const;
  const calls = state.calls.with(index, { ...call, approval, tool_input: input ?? call.tool_input });
  const pending = state.pending.filter((each) => each.tool_use_id !== tool_use_id);
  return { calls, pending, ...(input === undefined ? {} : withInput(state, tool_use_id, input)) };
}

/** The model is to see what was carried out as its call. A new generation, since the reply may be stored; its signed thinking stays as it was. */
function withInput(state: RunState, tool_use_id: string, tool_input: OpenCall['tool_input']): Pick<RunState, 'transcript'> {
  const { generation, messages } = state.transcript;
  const textual = state.spec?.protocol === 'json_action';
  return { transcript: { generation: generation + 1, messages: messages.map((message) => {
    if (message.role !== 'assistant' || !message.calls.some((call) => call.tool_use_id === tool_use_id)) return message;
    const calls = message.calls.map((call) => call.tool_use_id === tool_use_id ? { ...call, tool_input } : call);
    // There the text is the call: without it, it is said from the call.
    return { ...message, calls, ...(textual ? { text: '' } : {}) };
  }) } };
}
