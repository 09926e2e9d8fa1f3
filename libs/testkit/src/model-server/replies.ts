/**
 * What a scripted model server answers: builders for one reply each. Plain data; nothing here does I/O.
 */

export interface ScriptedCall {
  /** Null leaves the `id` field out, as old Ollama servers do. */
  readonly id: string | null;
  readonly name: string;
  /** An object; or, sent as it is, a string (where the wire has arguments as text: that text), null or (undefined) no field at all. */
  readonly args: unknown;
}

/** How a reply goes over the wire. */
export interface Delivery {
  /** Milliseconds of silence before the status line. */
  readonly delayMs?: number;
  /** Milliseconds between two chunks. */
  readonly chunkDelayMs?: number;
  /** Byte offsets at which the body is cut into chunks, or a chunk per byte; by default a chunk per line. */
  readonly cutAt?: readonly number[] | 'every_byte';
  /** Of a streamed message; default `\n`. */
  readonly lineEnd?: '\n' | '\r\n' | '\r';
}

export interface ScriptedMessage {
  readonly text?: string;
  /** Where the wire signs thoughts, with a signature that the strict validator knows again. */
  readonly thinking?: string;
  /** A thought that the client cannot read; only Anthropic's wire has such. */
  readonly redacted_thinking?: string;
  readonly calls?: readonly ScriptedCall[];
  /** Default is what the wire says of a whole reply (Ollama: `stop` with calls, too). `stop` and `length` are put in the wire's own words. */
  readonly done_reason?: string;
  /** Tokens; `cached` are among those of the prompt. Null leaves the counts out; by default derived from the sizes. */
  readonly usage?: { readonly prompt: number; readonly output: number; readonly cached?: number } | null;
  /** Pieces that a text (and arguments, where they are text) is spread over; default 3. */
  readonly pieces?: number;
}

/** `nothing`: before the status line. `headers`: right behind them. A number: so many bytes of the body. */
export type CutPoint = 'nothing' | 'headers' | number;

/** `reset` breaks the connection, `eof` ends the response as if it were whole. */
export type CutManner = 'reset' | 'eof';

export type WholeReply =
  | { readonly type: 'message'; readonly message: ScriptedMessage; readonly delivery: Delivery }
  | { readonly type: 'raw'; readonly chunks: readonly Uint8Array[]; readonly delivery: Delivery };

export type ScriptedReply =
  | WholeReply
  | { readonly type: 'status'; readonly status: number; readonly headers: Readonly<Record<string, string>>; readonly body: string; readonly delivery: Delivery }
  /** The status in the wire's own words. */
  | { readonly type: 'refusal'; readonly status: number; readonly headers: Readonly<Record<string, string>>; readonly message: string; readonly delivery: Delivery }
  /** Silence for ever; ended by the client or by the server's `close`. */
  | { readonly type: 'stall'; readonly after: CutPoint; readonly of: WholeReply }
  | { readonly type: 'cut'; readonly after: CutPoint; readonly how: CutManner; readonly of: WholeReply };

/** A whole reply of text alone. */
export function text(content: string, delivery: Delivery = {}): WholeReply {
  return { type: 'message', message: { text: content }, delivery };
}

/** A whole reply with one tool call. */
export function tool(id: string | null, name: string, args: unknown): WholeReply {
  return { type: 'message', message: { calls: [{ id, name, args }] }, delivery: {} };
}

/** A whole reply of any shape. */
export function reply(message: ScriptedMessage, delivery: Delivery = {}): WholeReply {
  return { type: 'message', message, delivery };
}

/** An HTTP status instead of a reply; a body that is not a string is sent as JSON. */
export function status(code: number, headers: Readonly<Record<string, string>> = {}, body: unknown = ''): ScriptedReply {
  const isText = typeof body === 'string';
  const type: Record<string, string> = isText ? {} : { 'content-type': 'application/json' };
  return { type: 'status', status: code, headers: { ...type, ...headers }, body: isText ? body : JSON.stringify(body), delivery: {} };
}

/** An error as the wire that was asked words it: for scripts that several wires share. */
export function refusal(code: number, message: string, headers: Readonly<Record<string, string>> = {}): ScriptedReply {
  return { type: 'refusal', status: code, headers, message, delivery: {} };
}

/** Sends the beginning of a reply, then nothing more, with the connection open. */
export function stall(options: { readonly after: CutPoint; readonly of?: WholeReply }): ScriptedReply {
  return { type: 'stall', after: options.after, of: options.of ?? text('This reply never ends.') };
}

/** Sends the beginning of a reply, then breaks off. */
export function cut(options: { readonly afterBytes: CutPoint; readonly how?: CutManner; readonly of?: WholeReply }): ScriptedReply {
  return { type: 'cut', after: options.afterBytes, how: options.how ?? 'reset', of: options.of ?? text('This reply is cut.') };
}

/** A 200 whose body is exactly these chunks. */
export function raw(chunks: readonly (string | Uint8Array)[], delivery: Delivery = {}): WholeReply {
  return { type: 'raw', chunks: chunks.map((chunk) => (typeof chunk === 'string' ? new TextEncoder().encode(chunk) : chunk)), delivery };
}
