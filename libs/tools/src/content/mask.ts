/**
 * Keeps the host's own secrets out of what tools say: a server may echo the header it was sent, in its description as well, and whatever a
 * tool says reaches the model, the log and the archive.
 */
import type { ToolRunResult } from '@treadle/engine';

const mark = '[redacted]';
/** Shorter values would black out ordinary words. */
const shortestSecret = 6;

export interface Mask {
  text(text: string): string;
  /** Of what can be written as JSON; itself where there is nothing to hide. */
  json<T>(value: T): T;
  result(result: ToolRunResult): ToolRunResult;
}

/** Also as JSON, URLs and Basic credentials write them. */
export function createMask(secrets: readonly string[]): Mask {
  const forms = secrets.filter((secret) => secret.length >= shortestSecret)
    .flatMap((secret) => [secret, JSON.stringify(secret).slice(1, -1), encodeURIComponent(secret.toWellFormed())]);
  // Longest first: a secret that begins with another one must not leave its end behind.
  const ordered = [...new Set(forms)].sort((a, b) => b.length - a.length);
  const text = (value: string): string => ordered.reduce((masked, form) => masked.replaceAll(form, () => mark), value);
  const bytes = (value: Uint8Array): Uint8Array => {
    const raw = Buffer.from(value.buffer, value.byteOffset, value.byteLength);
    if (!ordered.some((form) => raw.includes(form))) return value;
    return Buffer.from(ordered.reduce((masked, form) => masked.replaceAll(Buffer.from(form).toString('latin1'), () => mark), raw.toString('latin1')), 'latin1');
  };
  return {
    text,
    json: <T>(value: T): T => {
      const written = JSON.stringify(value);
      const masked = text(written);
      return masked === written ? value : JSON.parse(masked) as T;
    },
    result: (result) => ordered.length === 0 ? result : {
      ...result, content: text(result.content),
      ...(result.attachments === undefined ? {} : { attachments: result.attachments.map((each) => ({ ...each, bytes: bytes(each.bytes) })) }),
    },
  };
}
