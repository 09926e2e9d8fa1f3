/**
 * What a wire has of its own: where it is spoken, how a scripted message becomes bytes, how it words an error, and what it
 * refuses. Everything else of the model server (script, record, silences, cuts) is the same for all of them.
 */
import type { ScriptedMessage } from '../replies.ts';

export type DialectName = 'ollama' | 'openai' | 'anthropic';

/** The body of a chat request, of any wire. */
export interface ChatBody {
  readonly model?: string;
  readonly stream?: boolean;
  readonly messages?: readonly ChatMessage[];
  readonly [field: string]: unknown;
}

export interface ChatMessage { readonly role?: string; readonly content?: unknown; readonly [field: string]: unknown }

/** The request that a reply is for. */
export interface Asked {
  readonly body: ChatBody;
  /** Of the request, in the server's record. */
  readonly index: number;
  /** Stands in for the tokens of the prompt where the script names none. */
  readonly promptBytes: number;
}

/** A model the server says it has. */
export interface ServedModel {
  readonly name: string;
  /** Tokens. */
  readonly context_length: number;
  readonly capabilities: readonly string[];
}

/** A request that is not for a reply. */
export interface SideRequest {
  /** Method and path. */
  readonly what: string;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: ChatBody | null;
  readonly models: readonly ServedModel[];
}

export interface SideAnswer { readonly status: number; readonly body: unknown }

export interface Dialect {
  readonly name: DialectName;
  /** Method and path where replies are asked for. */
  readonly chat: string;
  /** Content type of a streamed reply. */
  readonly streamType: string;
  /** Larger requests get 413. */
  readonly maxBodyBytes: number;
  /** Whether this request wants its reply streamed. */
  streams(body: ChatBody): boolean;
  /** A streamed reply as the server writes it, piece by piece, with `\n` for line ends. */
  pieces(message: ScriptedMessage, asked: Asked): readonly string[];
  /** The same reply in one piece. */
  whole(message: ScriptedMessage, asked: Asked): unknown;
  errorBody(status: number, message: string): unknown;
  /** Every reason why a strict server refuses the request, in words; empty when it is valid. */
  problems(body: ChatBody): readonly string[];
  /** Null where the wire has nothing at this address. */
  beside(request: SideRequest): SideAnswer | null;
}

/** Tokens of a reply: what the script says (null: no counts at all), else made from the sizes. */
export function tokensOf(message: ScriptedMessage, asked: Asked): { readonly prompt: number; readonly output: number; readonly cached: number } | null {
  if (message.usage === null) return null;
  const { prompt, output, cached = 0 } = message.usage ?? { prompt: Math.ceil(asked.promptBytes / 4), output: Math.ceil(JSON.stringify(message).length / 4) };
  return { prompt, output, cached };
}

/** So many pieces, cut by code points, so that none holds half a character. */
export function cutText(text: string, count: number): string[] {
  const characters = [...text];
  const size = Math.max(1, Math.ceil(characters.length / Math.max(1, count)));
  const found: string[] = [];
  for (let start = 0; start < characters.length; start += size) found.push(characters.slice(start, start + size).join(''));
  return found;
}

export const piecesOfText = 3;
