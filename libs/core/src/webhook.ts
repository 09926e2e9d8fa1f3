/**
 * What becomes of an attempt to tell somebody that a run has ended: the schedule, and what each answer means.
 *
 * 1. Only 2xx counts as told. A redirect is a failure, since nobody follows it; 410 says that nobody is there any more.
 * 2. Everything else is tried again, about a day long, and is then dead: kept, and sent again only when a person asks.
 */

/** Where a run's end is told: an address, or an endpoint of the configuration by name. */
export type WebhookTarget = { readonly url: string } | { readonly endpoint: string };

/** In units of the first wait (5 s): 5 s, 30 s, 2 min, 10 min, 30 min, 1 h, 2 h, 4 h, 6 h, 10 h; in all 23.7 h. */
const schedule = [1, 6, 24, 120, 360, 720, 1440, 2880, 4320, 7200] as const;

/** How often a delivery is attempted before it is dead. */
export const mostWebhookAttempts = schedule.length + 1;

/** What came back, or why nothing did, in a few words and without the address. */
export type WebhookAnswer =
  | { readonly type: 'answered'; readonly status: number; /** As the receiver asked; null where it did not. */ readonly retry_after_ms: number | null }
  | { readonly type: 'failed'; readonly why: string };

export type WebhookOutcome =
  | { readonly type: 'delivered' }
  | { readonly type: 'retry'; readonly delay_ms: number }
  | { readonly type: 'dead' };

export interface WebhookTiming {
  /** The first wait; all others grow with it. */
  readonly first_wait_ms: number;
  /** 0 to below 1. */
  readonly jitter: number;
}

/** `tries`: attempts before this one, since it was last asked for. */
export function webhookOutcome(answer: WebhookAnswer, tries: number, { first_wait_ms, jitter }: WebhookTiming): WebhookOutcome {
  if (answer.type === 'answered' && answer.status >= 200 && answer.status < 300) return { type: 'delivered' };
  if (answer.type === 'answered' && answer.status === 410) return { type: 'dead' };
  const step = schedule[tries];
  if (step === undefined) return { type: 'dead' };
  const scheduled = step * first_wait_ms * (0.9 + 0.2 * jitter);
  const longest = schedule[schedule.length - 1]! * first_wait_ms;
  // Sooner than the schedule nobody is asked again, whatever he says.
  return { type: 'retry', delay_ms: Math.round(Math.max(scheduled, Math.min(askedWait(answer), longest))) };
}

function askedWait(answer: WebhookAnswer): number {
  if (answer.type === 'failed' || answer.retry_after_ms === null) return 0;
  return answer.status === 429 || answer.status === 503 ? answer.retry_after_ms : 0;
}

/** The same for every attempt, and for what is sent again: receivers tell repeats by it. */
export function webhookId(run_id: string): string {
  return `msg_${run_id.slice('run_'.length)}`;
}

/** The run that a delivery tells of; null for what was never an id of one. */
export function runOfWebhook(id: string): string | null {
  return /^msg_[0-9a-f]{32}$/.test(id) ? `run_${id.slice('msg_'.length)}` : null;
}

/** What an address may show in lists, logs and messages: a query may hold a token. Null for what is no URL. */
export function shownAddress(url: string): string | null {
  return /^https?:\/\/[^?#]*/i.exec(url)?.[0] ?? null;
}

/** `whsec_` and base64 of 24 to 64 bytes. */
export function isWebhookSecret(text: string): boolean {
  const [, base64] = /^whsec_([A-Za-z0-9+/]+={0,2})$/.exec(text) ?? [];
  if (base64 === undefined || base64.length % 4 !== 0) return false;
  const bytes = base64.length / 4 * 3 - (base64.length - base64.replace(/=+$/, '').length);
  return bytes >= 24 && bytes <= 64;
}
