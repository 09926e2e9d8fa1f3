/**
 * Of the run store's port: what is to be told of ended runs, and was. An outbox in the run's own shard.
 *
 * W1  A delivery is written once per run, by the first `finished` that brings it and finds the run there: before the run leaves the list of
 *     those with duties, in the same write.
 * W2  A pending delivery is handed out when it is due by the store's clock, then hidden for `lease_ms`; so it is handed out again where nobody
 *     says how the attempt went. At least once, and mostly once.
 * W3  Only the newest attempt is settled; settled twice it is as settled once.
 * W4  A pending delivery is dropped by nothing but the deletion of its run. Ended ones are kept for a time (delivered a day, dead a week), and of
 *     a tenant and shard only so many, the oldest go first.
 * W5  Deliveries of one lane (an endpoint, or an origin, of one tenant) wait behind each other, not in front of other lanes; and a tenant's lanes, however
 *     many there are, not in front of other tenants'.
 */
import type { WebhookTarget } from '@treadle/core';

export const deliveryStates = ['pending', 'delivered', 'dead'] as const;
export type DeliveryState = (typeof deliveryStates)[number];

/** What `finished` brings. The body is sent as it is, byte for byte, at each attempt. */
export interface NewDelivery {
  readonly tenant: string;
  readonly target: WebhookTarget;
  readonly lane: string;
  readonly body: string;
}

/** A delivery in the hands of whoever sends it. */
export interface TakenDelivery {
  readonly run_id: string;
  /** Which taking this is; it settles by it. */
  readonly taken: number;
  /** Attempts since it was last asked for. */
  readonly tries: number;
  readonly tenant: string;
  readonly target: WebhookTarget;
  readonly lane: string;
  readonly body: string;
}

export interface TakeDeliveries {
  /** Of all tenants. */
  readonly limit: number;
  /** How many of one tenant, and of one lane of his, may be under way here. */
  readonly per_tenant: number;
  readonly per_lane: number;
  /** And how many are, by tenant and lane. */
  readonly busy: Readonly<Record<string, Readonly<Record<string, number>>>>;
  /** Longer than one attempt can take. */
  readonly lease_ms: number;
}

/** `status`, `error`: of the attempt; error in words without secrets. */
export type Settlement =
  | { readonly type: 'delivered'; readonly status: number }
  | { readonly type: 'retry'; readonly delay_ms: number; readonly status: number | null; readonly error: string }
  | { readonly type: 'dead'; readonly status: number | null; readonly error: string }
  /** There was no attempt. */
  | { readonly type: 'later'; readonly delay_ms: number };

/** As lists show it; times are epoch milliseconds of the store's clock. */
export interface StoredDelivery {
  readonly run_id: string;
  readonly target: WebhookTarget;
  readonly state: DeliveryState;
  readonly attempts: number;
  readonly last_attempt_ms: number | null;
  readonly last_status: number | null;
  readonly last_error: string | null;
  readonly next_attempt_ms: number | null;
  readonly created_ms: number;
}

export interface ListDeliveries {
  readonly tenant: string;
  readonly state: DeliveryState | null;
  /** Of runs created before this one, newest first; null from the newest. */
  readonly before_id: string | null;
  readonly limit: number;
}

export interface Redeliver { readonly run_id: string; readonly tenant: string; /** Said twice, it is the same request. */ readonly request_id: string; readonly not_after_ms: number }

/** For the API. */
export interface DeliveryDirectory {
  /** Over all shards; a page can be short, or empty, and still have a next one. */
  deliveries(query: ListDeliveries): Promise<{ readonly deliveries: readonly StoredDelivery[]; readonly next_before_id: string | null }>;
  /** Null for another tenant's. */
  delivery(run_id: string, tenant: string): Promise<StoredDelivery | null>;
  /** One that has ended, or waits for its next attempt, is due now, with a schedule from the beginning. `pending`: an attempt is under way, or due already. */
  redeliver(asked: Redeliver): Promise<'due' | 'pending' | 'missing' | 'too_late'>;
}

/** For workers. */
export interface DeliveryUpkeep {
  /** Also drops, a few at a time, what has been kept long enough. */
  takeDeliveries(shard: number, take: TakeDeliveries): Promise<readonly TakenDelivery[]>;
  /** After the store was lost; one that it has is left alone. */
  restoreDelivery(run_id: string, delivery: NewDelivery): Promise<'restored' | 'exists'>;
  settleDelivery(taken: Pick<TakenDelivery, 'run_id' | 'taken' | 'lane'>, how: Settlement): Promise<'settled' | 'stale'>;
}
