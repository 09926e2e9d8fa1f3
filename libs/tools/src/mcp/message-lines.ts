/**
 * What a server writes, line by line, as messages. Lenient about answers: an answer that is not JSON-RPC to the letter (`"error": null`
 * beside a result, a field too many) would be thrown away, and whoever waits for it would wait until its time is over.
 *
 * Owns: the line that is being read.
 *
 * 1  No line is longer than its bound.
 */
import { ErrorCode, JSONRPCMessageSchema, type JSONRPCMessage } from '@modelcontextprotocol/sdk/types.js';
import { errorText } from '../call/run-call.ts';

const lineFeed = 10;

export class MessageLines {
  readonly #maxBytes: number;
  #parts: Buffer[] = [];
  #size = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** The lines that have come to their end. @throws where one is too long. */
  append(chunk: Buffer): string[] {
    const lines: string[] = [];
    let from = 0;
    for (let end = chunk.indexOf(lineFeed); end !== -1; end = chunk.indexOf(lineFeed, from)) {
      this.#keep(chunk.subarray(from, end));
      lines.push(Buffer.concat(this.#parts).toString('utf8').replace(/\r$/, ''));
      this.clear();
      from = end + 1;
    }
    this.#keep(chunk.subarray(from));
    return lines;
  }

  /** What has come since the end of the last line. */
  rest(): Buffer {
    return Buffer.concat(this.#parts);
  }

  clear(): void {
    this.#parts = [];
    this.#size = 0;
  }

  #keep(part: Buffer): void {
    this.#size += part.length;
    if (this.#size > this.#maxBytes) throw new TypeError(`a message is longer than ${this.#maxBytes} bytes`);
    if (part.length > 0) this.#parts.push(part);
  }
}

/** Some programs put a byte order mark before the first thing that they write. @throws for what is no message. */
export function messageOf(line: string): JSONRPCMessage {
  const value: unknown = JSON.parse(line.replace(/^\uFEFF/, ''));
  const parsed = JSONRPCMessageSchema.safeParse(value);
  return parsed.success ? parsed.data : answerIn(value) ?? JSONRPCMessageSchema.parse(value);
}

/** JSON text with every answer in it as the letter has it; as it is where it says nothing of that kind. */
export function toTheLetter(text: string): string {
  try {
    const value: unknown = JSON.parse(text);
    const answer = JSONRPCMessageSchema.safeParse(value).success ? null : answerIn(value);
    return answer === null ? text : JSON.stringify(answer);
  } catch {
    return text;
  }
}

/** An answer by what it must have meant; null for anything else. */
function answerIn(value: unknown): JSONRPCMessage | null {
  if (!isObject(value)) return null;
  const { id, method, result, error } = value;
  if (method !== undefined || (typeof id !== 'string' && typeof id !== 'number')) return null;
  if (isObject(result) && (error === undefined || error === null)) {
    const { _meta, ...rest } = result;
    return { jsonrpc: '2.0', id, result: isObject(_meta) ? { _meta, ...rest } : rest };
  }
  const { code, message } = isObject(error) ? error : {};
  const said = typeof message === 'string' ? message : error === undefined || error === null ? 'its answer cannot be read' : errorText(error);
  return { jsonrpc: '2.0', id, error: { code: Number.isInteger(code) ? code as number : ErrorCode.InternalError, message: said } };
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
