/**
 * Signatures of thinking blocks. One is good for the model that thought and for the very words; it can be checked without a
 * memory of what was issued, so a conversation may go on at another server of the same script.
 */
import { createHash } from 'node:crypto';

export function signatureOf(model: string, thinking: string): string {
  return createHash('sha256').update(`${model}\0${thinking}`).digest('base64');
}

/** The sealed form, whose words only the server could read. */
export function sealed(model: string, thinking: string): string {
  return `${Buffer.from(thinking).toString('base64')}.${signatureOf(model, thinking)}`;
}

export function isSealedBy(model: string, data: string): boolean {
  const [words = '', signature] = data.split('.');
  return signature === signatureOf(model, Buffer.from(words, 'base64').toString());
}
