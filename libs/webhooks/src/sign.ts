/**
 * The signature of Standard Webhooks: HMAC-SHA256 over `id.timestamp.body`, in base64, with `v1,` before it; several with blanks between, one for
 * each secret that a receiver may know. A few lines over the platform's HMAC, so that the library that receivers use is the judge in our tests,
 * and not on both sides of them.
 */
import { createHmac } from 'node:crypto';

export interface Signed {
  readonly id: string;
  /** Epoch seconds. */
  readonly timestamp: number;
  readonly body: string;
}

/** `secrets`: each `whsec_` and base64. */
export function sign({ id, timestamp, body }: Signed, secrets: readonly string[]): string {
  return secrets.map((secret) => `v1,${createHmac('sha256', Buffer.from(secret.slice('whsec_'.length), 'base64')).update(`${id}.${timestamp}.${body}`).digest('base64')}`).join(' ');
}
