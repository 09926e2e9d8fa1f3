/**
 * Making room in the context window, level by level, each cheaper to undo than the next. Pure: edits are planned here and become
 * events; nothing is changed in place.
 *
 * 1  The first user message and the newest exchanges survive every level but the last, which still keeps the first user message
 *    and the newest exchange, with its results capped. Where even that is too much for every window of the chain, what
 *    earlier runs of the session have said goes, too: the run's own first message is kept instead.
 * 2  A cut never separates a call from its result.
 * 3  A level that does not bring the tokens under 95 % of what they were is not worth an event: the next one is tried.
 */
import type { ModelSpec } from './agent-spec.ts';
import type { CompactionLevel, CompactionSite, EventBody, TranscriptEdit } from './events.ts';
import { hasImages, withoutImages } from './images.ts';
import type { KeptMessage, Message } from './message.ts';
import { own } from './own.ts';
import { estimateTokens, messageBytes } from './request.ts';
import { specOf, type RunState } from './state.ts';
import { edited } from './transcript.ts';
import { capText, utf8Length } from './well-formed.ts';

export const compactionLevels: readonly CompactionLevel[] = ['results', 'images', 'summary', 'snip', 'emergency_snip'];

/** Exchanges (a reply and its results) at the end that stay whole. */
const keptExchanges = 2;
/** A shorter result is not worth a stub. */
const stubBytes = 300;
/** A middle smaller than this is not worth a model call, tokens. */
const worthSummary = 400;

export interface Fit {
  /** Tokens that the request should not exceed. */
  readonly target: number;
  /** With so many the last level, which takes whole exchanges, is not worth what it takes. */
  readonly enough: number;
  readonly site: CompactionSite;
  /** The first level that may be used. */
  readonly from: CompactionLevel;
}

/** What the next request must fit into; null when nothing is to be done. */
export function fitFor(state: RunState, model: ModelSpec): Fit | null {
  const estimate = estimateTokens(state, model.name);
  const trigger = state.limits.compact_at * model.context_window;
  const roomy = 0.75 * trigger;
  if (state.compact_next === 'aggressive') return { target: Math.min(roomy, 0.4 * estimate), enough: Math.min(roomy, 0.4 * estimate), site: 'prompt_too_long', from: 'snip' };
  if (state.compact_next === 'reactive') return { target: Math.min(roomy, 0.7 * estimate), enough: Math.min(model.context_window, 0.85 * estimate), site: 'prompt_too_long', from: 'results' };
  return estimate > trigger ? { target: roomy, enough: model.context_window, site: 'proactive_compaction', from: 'results' } : null;
}

/** One level's event, or null where it makes no progress. Not for `summary`, which needs a model: see `summaryOf`. */
export function planLevel(state: RunState, model: ModelSpec, level: CompactionLevel, fit: Fit): EventBody | null {
  const edit = editOf(state, model, level, fit.target);
  if (edit.removed.length === 0 && edit.replaced.length === 0) return null;
  return compactionEvent(state, model, { level, site: fit.site, edit });
}

export function compactionEvent(
  state: RunState, model: ModelSpec, { level, site, edit }: { readonly level: CompactionLevel; readonly site: CompactionSite; readonly edit: TranscriptEdit },
): EventBody | null {
  const tokens_before = estimateTokens(state, model.name);
  const after = afterEdit(state, edit);
  const { generation } = after.transcript;
  const tokens_after = estimateTokens(after, model.name);
  if (tokens_after >= 0.95 * tokens_before) return null;
  return { type: 'compaction', level, site, tokens_before, tokens_after, generation, ...edit };
}

function afterEdit(state: RunState, edit: TranscriptEdit): RunState {
  return { ...state, ...edited(state, { ...edit, seq: state.last_seq + 1, generation: state.transcript.generation + 1 }) };
}

function editOf(state: RunState, model: ModelSpec, level: CompactionLevel, target: number): TranscriptEdit {
  const { messages } = state.transcript;
  switch (level) {
    case 'results': return { removed: [], replaced: oldMessages(messages).flatMap(stubOf) };
    case 'images': return { removed: [], replaced: seenBefore(messages).flatMap(imageStub) };
    case 'summary': return { removed: [], replaced: [] };
    case 'snip': return { removed: snipped(state, model, target), replaced: [] };
    case 'emergency_snip': return emergency(state, model, target);
  }
}

function stubOf(message: KeptMessage): { seq: number; by: string }[] {
  if (message.role !== 'tool' || utf8Length(message.content) <= stubBytes) return [];
  return [{ seq: message.seq, by: `[The result of ${message.tool_name}, ${utf8Length(message.content)} bytes, was left out to save room.]` }];
}

/** A user's before his newest message, a tool's before the newest exchanges. */
function seenBefore(messages: readonly KeptMessage[]): readonly KeptMessage[] {
  const old = new Set(oldMessages(messages));
  const last = lastUser(messages);
  return messages.filter((message, index) => message.role === 'tool' ? old.has(message) : index < last);
}

function imageStub(message: KeptMessage): { seq: number; by: string }[] {
  return hasImages([message]) ? [{ seq: message.seq, by: withoutImages(message, '[An image was left out to save room.]') }] : [];
}

/** Between the first user message and the newest exchanges. */
export function oldMessages(messages: readonly KeptMessage[]): readonly KeptMessage[] {
  const first = messages.findIndex((message) => message.role === 'user');
  return messages.slice(first + 1, tailStart(messages, keptExchanges));
}

/** Where the newest exchanges begin; never between a call and its result. */
function tailStart(messages: readonly KeptMessage[], exchanges: number): number {
  let left = exchanges;
  for (let index = messages.length - 1; index >= 0; index--) {
    if (messages[index]?.role === 'assistant' && --left === 0) return index;
  }
  return Math.max(0, messages.findIndex((message) => message.role === 'user') + 1);
}

function lastUser(messages: readonly Message[]): number {
  return messages.findLastIndex((message) => message.role === 'user');
}

/** The oldest of the middle, as much as it takes. */
function snipped(state: RunState, model: ModelSpec, target: number): (readonly [number, number])[] {
  const old = oldMessages(state.transcript.messages);
  const factor = own(state.calibration, model.name) ?? 1;
  let excess = estimateTokens(state, model.name) - target;
  let end = 0;
  while (end < old.length && (excess > 0 || old[end]?.role === 'tool')) {
    excess -= messageBytes(old[end] as KeptMessage) / 4 * factor;
    end++;
  }
  return rangeOf(old.slice(0, end));
}

/** The first user message and the newest exchange; the run's own where the session's are too much for the window. */
function emergency(state: RunState, model: ModelSpec, target: number): TranscriptEdit {
  const { messages } = state.transcript;
  const first = messages.findIndex((message) => message.role === 'user');
  const edit = keepingOnly(state, model, { first, target });
  // What came before the run has a number below its own events'.
  const ownFirst = messages.findIndex((message) => message.role === 'user' && message.seq > 0);
  const after = afterEdit(state, edit);
  // A larger window, where the chain has one, is better than to forget.
  if (ownFirst <= first || specOf(state).chain.models.some(({ name, context_window }) => estimateTokens(after, name) <= context_window)) return edit;
  return keepingOnly(state, model, { first: ownFirst, target });
}

interface Keeping { readonly first: number; readonly target: number }

/** The message at `first` and the newest exchange behind it, its results capped to the room that all else leaves; everything else goes. */
function keepingOnly(state: RunState, model: ModelSpec, { first, target }: Keeping): TranscriptEdit {
  const { messages } = state.transcript;
  const bytesPerToken = 4 / (own(state.calibration, model.name) ?? 1);
  const tail = messages.slice(Math.max(first + 1, tailStart(messages, 1)));
  const results = tail.filter((message) => message.role === 'tool');
  const earlier = messages.slice(0, first).filter((message) => message.seq < 0);
  const middle = messages.slice(first + 1, messages.length - tail.length);
  const goes = [...earlier, ...middle, ...results].reduce((sum, message) => sum + messageBytes(message), 0);
  const room = (target - estimateTokens(state, model.name)) * bytesPerToken + goes;
  const each = Math.max(200, Math.floor(room / Math.max(1, results.length)));
  const replaced = results.flatMap((message) => {
    const { text, truncated_bytes } = capText(message.content, each);
    return truncated_bytes === 0 ? [] : [{ seq: message.seq, by: text }];
  });
  return { removed: [...rangeOf(earlier), ...rangeOf(middle)], replaced };
}

function rangeOf(messages: readonly KeptMessage[]): (readonly [number, number])[] {
  const seqs = messages.map((message) => message.seq);
  return seqs.length === 0 ? [] : [[Math.min(...seqs), Math.max(...seqs)]];
}

/** What a model is asked, and what its summary will stand for; null where the middle is too small for it. */
export function summaryOf(state: RunState, model: ModelSpec): { readonly messages: readonly Message[]; readonly removed: readonly (readonly [number, number])[] } | null {
  const old = oldMessages(state.transcript.messages);
  const tokens = old.reduce((sum, message) => sum + messageBytes(message) / 4, 0);
  if (tokens < worthSummary) return null;
  const { text } = capText(old.map(asLine).join('\n'), Math.max(2000, Math.floor(model.context_window * 4 * 0.5)));
  return { messages: [{ role: 'user', content: `${summaryPrompt}\n\n${text}` }], removed: rangeOf(old) };
}

const summaryPrompt = 'Summarise this part of a conversation between a user, an assistant and its tools, so that the assistant can go on '
  + 'without it. Keep: the goal, constraints, what was done and found, decisions with their reasons, names and numbers that matter, open points. '
  + 'Where it holds an earlier summary, update that one. Write the summary only.';

function asLine(message: KeptMessage): string {
  switch (message.role) {
    case 'user': return `User: ${typeof message.content === 'string' ? message.content : message.content.map((part) => part.type === 'text' ? part.text : '[image]').join(' ')}`;
    case 'host': return message.note === 'summary' ? `Earlier summary: ${message.content}` : `Host: ${message.content}`;
    case 'assistant': return `Assistant: ${message.text}${message.calls.map((call) => ` [calls ${call.tool_name} ${JSON.stringify(call.tool_input)}]`).join('')}`;
    case 'tool': return `Result of ${message.tool_name}: ${message.content}`;
  }
}
