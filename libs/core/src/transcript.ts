/**
 * How the transcript changes: appended to within a generation, edited into a new one.
 */
import type { TranscriptEdit } from './events.ts';
import type { HostNote, KeptMessage } from './message.ts';
import type { RunState } from './state.ts';

export function append(state: RunState, ...messages: readonly KeptMessage[]): Pick<RunState, 'transcript'> {
  if (messages.length === 0) return { transcript: state.transcript };
  return { transcript: { generation: state.transcript.generation, messages: [...state.transcript.messages, ...messages] } };
}

export function hostNote(seq: number, note: HostNote, content: string): KeptMessage {
  return { seq, role: 'host', note, content };
}

/** Nothing may stand between a call and its result: what is said meanwhile waits for the last of them. */
export function said(state: RunState, message: KeptMessage): Partial<RunState> {
  if (state.calls.some((call) => !call.settled)) return { waiting_messages: [...state.waiting_messages, message] };
  return { ...append(state, message), candidate: null };
}

/** A new generation: some messages gone, the content of others replaced, a summary behind the first user message. */
export function edited(state: RunState, edit: TranscriptEdit & { readonly seq: number; readonly generation: number }): Partial<RunState> {
  const retired: string[] = [];
  const messages: KeptMessage[] = [];
  const replacements = new Map(edit.replaced.map(({ seq, by }) => [seq, by]));
  for (const message of state.transcript.messages) {
    const replacedSummary = edit.summary !== undefined && message.role === 'host' && message.note === 'summary';
    if (replacedSummary || edit.removed.some(([from, to]) => message.seq >= from && message.seq <= to)) {
      if (message.role === 'assistant') retired.push(...message.calls.map((call) => call.tool_use_id));
      continue;
    }
    const by = replacements.get(message.seq);
    messages.push(by === undefined ? message : withContent(message, by));
  }
  if (edit.summary !== undefined) {
    const first = messages.findIndex((message) => message.role === 'user');
    messages.splice(first + 1, 0, hostNote(edit.seq, 'summary', edit.summary));
  }
  return {
    transcript: { generation: edit.generation, messages },
    retired_ids: retired.length === 0 ? state.retired_ids : [...state.retired_ids, ...retired],
  };
}

/** Images go with the content they are replaced in; calls of a reply stay. What a provider signed, it signed for the text as it was. */
function withContent(message: KeptMessage, content: string): KeptMessage {
  if (message.role === 'assistant') return { ...message, text: content, provider_data: null };
  if (message.role !== 'tool') return { ...message, content };
  const { images: _, ...rest } = message;
  return { ...rest, content };
}
