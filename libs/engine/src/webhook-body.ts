/**
 * What is told of an ended run, in the manner of Standard Webhooks: `{type, timestamp, data}`, `data` being the run as the API shows it.
 * Rendered once, kept, and sent byte for byte the same. At most `maxWebhookBytes`: of a larger run parts are left out, the answer is cut last,
 * and `truncated` says so. It is valid JSON always.
 */
import { utf8Length, wellFormed, type RunState, type WebhookTarget } from '@treadle/core';
import type { NewDelivery } from './ports/webhook-outbox.ts';
import { runView } from './run-view.ts';

export const maxWebhookBytes = 256 * 1024;

/** In this order; each becomes null, so that a receiver finds the fields that it knows. */
const leftOut = ['output', 'partial', 'checks', 'error', 'metadata', 'pending', 'limits', 'recoveries', 'tags', 'usage'] as const;

/** Null where nobody is to be told, or there is nothing to tell yet. */
export function deliveryOf(state: RunState, archived_seq: number): NewDelivery | null {
  const { webhook, ended_at, tenant } = state;
  if (webhook === undefined || ended_at === null) return null;
  return { tenant, target: webhook, lane: laneOf(webhook), body: webhookBody(runView(state, archived_seq)) };
}

/** The same of a run that the archive alone knows, by its document; null where it tells nobody. */
export function deliveryOfArchived(document: Readonly<Record<string, unknown>>): NewDelivery | null {
  const { tenant, children: _, webhook, ...run } = document as { readonly tenant: string; readonly children?: unknown; readonly webhook?: WebhookTarget };
  return webhook === undefined ? null : { tenant, target: webhook, lane: laneOf(webhook), body: webhookBody(run) };
}

/** Who answers slowly, or not at all, keeps back nobody else's. */
function laneOf(target: WebhookTarget): string {
  return 'endpoint' in target ? `endpoint ${target.endpoint}` : new URL(target.url).origin;
}

/** `run`: as the API shows it, ended. */
export function webhookBody(run: Readonly<Record<string, unknown>>): string {
  const envelope = { type: `run.${String(run['status'])}`, timestamp: run['ended_at'] };
  const whole = JSON.stringify({ ...envelope, data: run });
  if (utf8Length(whole) <= maxWebhookBytes) return whole;
  const answer = typeof run['answer'] === 'string' ? run['answer'] : null;
  const render = (data: Readonly<Record<string, unknown>>): string => JSON.stringify({ ...envelope, truncated: true, data });
  let data: Record<string, unknown> = { ...run, answer: null };
  for (const name of leftOut) {
    // Half of the room is the answer's, where there is one.
    if (utf8Length(render(data)) <= maxWebhookBytes / (answer === null ? 1 : 2)) break;
    data = { ...data, [name]: null };
  }
  if (answer === null) return render(data);
  return render({ ...data, answer: fitting(answer, (text) => utf8Length(render({ ...data, answer: text })) <= maxWebhookBytes) });
}

/** The longest beginning that fits; an escaped character takes up to six bytes, so the length alone does not say. */
function fitting(text: string, fits: (beginning: string) => boolean): string {
  let [fit, over] = [0, Math.min(text.length, maxWebhookBytes) + 1];
  while (over - fit > 1) {
    const middle = Math.floor((fit + over) / 2);
    if (fits(text.slice(0, middle))) fit = middle;
    else over = middle;
  }
  const beginning = text.slice(0, fit);
  // Not half a character.
  return beginning.isWellFormed() ? beginning : wellFormed(beginning.slice(0, -1));
}
