/**
 * How a reply, its calls and their results change a run.
 */
import { InvariantBroken } from './assert-never.ts';
import { joinPieces } from './continuation.ts';
import type { ToolResult, ToolUse } from './events.ts';
import { callFingerprint, errorFingerprint, rememberedCalls, repetitions } from './fingerprint.ts';
import { isImage } from './images.ts';
import type { KeptMessage, ToolImage } from './message.ts';
import { rememberError, type OpenCall, type RunState } from './state.ts';
import { append } from './transcript.ts';

type Reply = Extract<KeptMessage, { role: 'assistant' }>;

/** An accepted reply: the models of the chain may be tried anew. */
const accepted = { tried: [], model_errors: 0, parks: 0 } as const;

/** Text and thinking of one reply gather in one message; its calls follow. */
export function replied(state: RunState, seq: number, part: { text: string } | { thinking: string; provider_data: unknown }): Partial<RunState> {
  const candidate = 'text' in part ? { candidate: joinPieces(state.pieces, part.text) } : {};
  return { ...inReply(state, seq, (reply) => ({ ...reply, ...part })), ...candidate, ...accepted };
}

export function called(state: RunState, event: ToolUse & { seq: number }): Partial<RunState> {
  const call: OpenCall = {
    tool_use_id: event.tool_use_id, tool_name: event.tool_name, tool_input: event.tool_input, execution: event.execution,
    invalid: event.invalid ?? null, settled: false, waiting_result: null,
  };
  if (state.calls.some((other) => other.tool_use_id === call.tool_use_id)) throw new InvariantBroken(`call ${call.tool_use_id} twice`);
  const { tool_use_id, tool_name, tool_input } = event;
  return {
    ...inReply(state, event.seq, (reply) => ({ ...reply, calls: [...reply.calls, { tool_use_id, tool_name, tool_input }] })),
    ...accepted, ...remembered(state, event), candidate: null, pieces: '', output_room: 1, calls: [...state.calls, call],
    tool_calls: state.tool_calls + 1, reasks: 0, invalid_calls: event.invalid === undefined ? 0 : state.invalid_calls + 1,
  };
}

/** Polling is repetition on purpose, and invalid calls are counted for themselves. */
function remembered(state: RunState, event: ToolUse): Partial<RunState> {
  if (event.invalid !== undefined || isPolling(state, event.tool_name)) return {};
  const call_prints = [...state.call_prints, callFingerprint(event.tool_name, event.tool_input, state.rules)].slice(-rememberedCalls);
  return { call_prints, loop_noted: state.loop_noted && repetitions(call_prints) > 1 };
}

function isPolling(state: RunState, name: string): boolean {
  return state.tools?.find((tool) => tool.name === name)?.polling ?? false;
}

/** Changes the reply of this turn, or begins it. A reply is open while nothing has followed it. */
function inReply(state: RunState, seq: number, with_: (reply: Reply) => Reply): Pick<RunState, 'transcript'> {
  const { generation, messages } = state.transcript;
  const last = messages.at(-1);
  if (last?.role === 'assistant') return { transcript: { generation, messages: [...messages.slice(0, -1), with_(last)] } };
  return append(state, with_({ seq, role: 'assistant', text: '', thinking: '', provider_data: null, calls: [], model: state.model ?? '' }));
}

export function settled(state: RunState, event: ToolResult & { seq: number }): Partial<RunState> {
  const index = state.calls.findIndex((call) => call.tool_use_id === event.tool_use_id);
  const call = state.calls[index];
  if (call === undefined || call.settled) throw new InvariantBroken(`result for ${event.tool_use_id}, which is not open`);
  const calls = state.calls.with(index, { ...call, settled: true, waiting_result: { seq: event.seq, content: event.content, is_error: event.is_error, ...imagesOf(event) } });
  const happened = event.outcome !== 'not_started' && event.outcome !== 'cancelled' && event.outcome !== 'denied' && call.invalid === null;
  const failure = event.is_error && event.outcome === undefined && call.invalid === null && !isPolling(state, call.tool_name);
  return {
    ...intoTranscript(state, calls), ...(happened ? { consecutive_errors: 0 } : {}),
    ...(failure ? { tool_errors: state.tool_errors + 1, error_prints: rememberError(state, errorFingerprint(`tool ${call.tool_name}`, event.content)) } : {}),
  };
}

/** What a model may look at; the rest is only named. */
function imagesOf({ attachments = [] }: ToolResult): { readonly images?: readonly ToolImage[] } {
  const images = attachments.filter((each) => isImage(each));
  return images.length === 0 ? {} : { images };
}

/** Moves results whose earlier siblings are all settled to the transcript; what people said follows the last result. */
function intoTranscript(state: RunState, calls: readonly OpenCall[]): Partial<RunState> {
  const messages: KeptMessage[] = [];
  const kept: OpenCall[] = [];
  let waiting = false;
  for (const call of calls) {
    waiting ||= !call.settled;
    if (!waiting && call.waiting_result !== null) {
      messages.push({ role: 'tool', tool_use_id: call.tool_use_id, tool_name: call.tool_name, ...call.waiting_result });
      kept.push({ ...call, waiting_result: null });
    } else kept.push(call);
  }
  if (waiting) return { ...append(state, ...messages), calls: kept };
  return { ...append(state, ...messages, ...state.waiting_messages), calls: kept, waiting_messages: [] };
}
