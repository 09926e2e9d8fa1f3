/**
 * The transcript as the run keeps it. Providers' wire forms are made from it by their adapters.
 */

export type ContentPart =
  | { readonly type: 'text'; readonly text: string }
  /** `data` is base64 without a prefix. */
  | { readonly type: 'image'; readonly media_type: string; readonly data: string };

export type Content = string | readonly ContentPart[];

export interface MessageToolCall {
  readonly tool_use_id: string;
  readonly tool_name: string;
  readonly tool_input: Readonly<Record<string, unknown>>;
}

export interface AssistantMessage {
  readonly role: 'assistant';
  readonly text: string;
  readonly thinking: string;
  /** What its provider wants back with the thinking, unchanged; for `model` alone. Null or absent: nothing. */
  readonly provider_data?: unknown;
  readonly calls: readonly MessageToolCall[];
  readonly model: string;
}

/** What a tool gave beside its text, kept in the run's folder of the archive. */
export interface Attachment {
  /** sha256. */
  readonly blob: string;
  readonly media_type: string;
  readonly bytes: number;
}

/** An attachment that a model may look at. `data`, base64, is there only in a request, put in when it is sent. */
export type ToolImage = Attachment & { readonly data?: string };

export type Message =
  | { readonly role: 'user'; readonly content: Content }
  /** Said by the host, not by a person. Providers render it as a user message. */
  | { readonly role: 'host'; readonly note: HostNote; readonly content: string }
  | AssistantMessage
  | { readonly role: 'tool'; readonly tool_use_id: string; readonly tool_name: string; readonly content: string; readonly is_error: boolean; readonly images?: readonly ToolImage[] };

/** Append-only within a generation; compaction starts a new one. */
export interface Transcript {
  readonly generation: number;
  readonly messages: readonly KeptMessage[];
}

/** `seq` is that of the event it came from (of a reply: of its first), by which edits name it. */
export type KeptMessage = Message & { readonly seq: number };

/** What the host has to say: a person's steering text, that a reply was empty or cut, what validators and hooks want, … */
export type HostNote = 'steer' | 'reask' | 'continue' | 'feedback' | 'hook' | 'loop' | 'summary' | 'action_result' | 'repair';
