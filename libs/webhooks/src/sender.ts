/**
 * Sends one attempt of a delivery: signed and stamped anew, to an address that its `fetch` lets through.
 *
 * 1  What has no secret is not sent.
 * 2  The status decides. Of the answer's body a little is read, so that the receiver sees its end, and nothing of it is kept.
 * 3  What went wrong is told without paths and queries, which may hold tokens, without what is sent, and without what a name stands for or where an endpoint of
 *    the configuration lies: tenants read it.
 */
import type { WebhookAnswer, WebhookTarget } from '@treadle/core';
import type { WebhookSender, WebhookSending } from '@treadle/engine';
import { sign } from './sign.ts';
import { sameAddress } from './target.ts';

export interface WebhookSecrets {
  readonly secret: string;
  /** While receivers change over: signed with both. */
  readonly previous_secret?: string | undefined;
}

export interface WebhookEndpoint extends WebhookSecrets {
  readonly url: string;
  /** Sent along; none of ours can be replaced by them. */
  readonly headers: Readonly<Record<string, string>>;
}

export interface WebhookSenderOptions {
  /** Must not follow redirects, and keep away from where nobody should get by a webhook. */
  readonly fetch: typeof fetch;
  readonly endpoints: Readonly<Record<string, WebhookEndpoint>>;
  /** Of addresses that no endpoint has; null: none. */
  readonly others: WebhookSecrets | null;
  readonly version: string;
  readonly nowMs: () => number;
}

/** Of an answer. */
const readBytes = 8 * 1024;
const readMs = 1000;
const longestWhy = 300;

interface Receiver { readonly url: string; readonly headers: Readonly<Record<string, string>>; readonly secrets: readonly string[] }

/** What this process has no endpoint or no secret for has failed, and is not sent. */
export function createWebhookSender(options: WebhookSenderOptions): WebhookSender {
  return {
    send: async ({ id, target, body, signal }: WebhookSending): Promise<WebhookAnswer> => {
      const receiver = receiverOf(target, options);
      if (typeof receiver === 'string') return { type: 'failed', why: receiver };
      const timestamp = Math.floor(options.nowMs() / 1000);
      const headers = {
        ...lowerCased(receiver.headers), 'content-type': 'application/json', 'user-agent': `Treadle-Webhooks/${options.version}`,
        'webhook-id': id, 'webhook-timestamp': String(timestamp), 'webhook-signature': sign({ id, timestamp, body }, receiver.secrets),
      };
      try {
        const response = await options.fetch(receiver.url, { method: 'POST', headers, body, signal, redirect: 'manual' });
        await readSome(response);
        return { type: 'answered', status: response.status, retry_after_ms: retryAfterMs(response.headers.get('retry-after'), options.nowMs()) };
      } catch (error) {
        return { type: 'failed', why: whyOf(error, 'endpoint' in target ? URL.parse(receiver.url) : null) };
      }
    },
  };
}

/** Or why there is none here. */
function receiverOf(target: WebhookTarget, { endpoints, others }: WebhookSenderOptions): Receiver | string {
  if ('endpoint' in target) {
    const endpoint = Object.hasOwn(endpoints, target.endpoint) ? endpoints[target.endpoint] : undefined;
    return endpoint === undefined ? `no endpoint is named "${target.endpoint}" in the configuration of this worker` : { ...endpoint, secrets: secretsOf(endpoint) };
  }
  const endpoint = Object.values(endpoints).find(({ url }) => sameAddress(url, target.url));
  if (endpoint !== undefined) return { ...endpoint, secrets: secretsOf(endpoint) };
  return others === null ? 'this worker has nothing to sign it with: TREADLE_WEBHOOK_SECRET is not set' : { url: target.url, headers: {}, secrets: secretsOf(others) };
}

function secretsOf({ secret, previous_secret }: WebhookSecrets): string[] {
  return previous_secret === undefined ? [secret] : [secret, previous_secret];
}

function lowerCased(headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
}

/** Never throws: the status has come, whatever becomes of the rest. */
async function readSome(response: Response): Promise<void> {
  const reader = response.body?.getReader();
  if (reader === undefined) return;
  const end = performance.now() + readMs;
  let read = 0;
  try {
    while (read < readBytes) {
      const next = await Promise.race([reader.read(), new Promise<null>((resolve) => { setTimeout(() => { resolve(null); }, Math.max(0, end - performance.now())).unref(); })]);
      if (next === null || next.done) break;
      read += next.value.byteLength;
    }
  } catch {
    // It broke off behind its head.
  }
  await reader.cancel().catch(() => undefined);
}

/** Seconds, or a date. */
function retryAfterMs(header: string | null, now_ms: number): number | null {
  if (header === null) return null;
  const ms = /^\d{1,9}$/.test(header.trim()) ? Number(header) * 1000 : Date.parse(header) - now_ms;
  return Number.isNaN(ms) ? null : Math.max(0, ms);
}

/** `hidden`: an address that is not to be told. */
function whyOf(error: unknown, hidden: URL | null): string {
  const { name, message, cause } = error instanceof Error ? error : new Error(String(error));
  const why = name === 'TimeoutError' ? 'no answer in time' : name === 'AbortError' ? 'broken off' : coded(message, cause);
  return (hidden === null ? why : why.replaceAll(hidden.origin, 'its origin').replaceAll(hidden.hostname, 'the endpoint')).slice(0, longestWhy);
}

/** The system's own words name addresses: what happened, and its code. */
function coded(message: string, cause: unknown): string {
  const { code, errors = [] } = (cause ?? {}) as { readonly code?: unknown; readonly errors?: readonly { readonly code?: unknown }[] };
  const codes = new Set((errors.length > 0 ? errors.map((each) => each.code) : [code]).filter((each) => typeof each === 'string' && !each.startsWith('HPE_')));
  return codes.size === 0 ? message : `${message.split(':', 1)[0] ?? ''}: ${[...codes].join(', ')}`;
}
