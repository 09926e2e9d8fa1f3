/**
 * What a scripted model server answers: builders for one reply each. Plain data; nothing here does I/O.
 */

export interface ScriptedCall {
  /** Null leaves the `id` field out, as old Ollama servers do. */
  readonly id: string | null;
  readonly name: string;
  /** Sent as it is: an object, but also a string, null or (undefined) no field at all. */
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
}

export interface ScriptedMessage {
  readonly text?: string;
  readonly thinking?: string;
  readonly calls?: readonly ScriptedCall[];
  /** Default `stop`, also with calls, as Ollama does. */
  readonly done_reason?: string;
  /** Tokens; null leaves the counts out; by default derived from the sizes. */
  readonly usage?: { readonly prompt: number; readonly output: number } | null;
  /** Lines the text is spread over; default 3. */
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
