/** What was told of ended runs, as `GET /v1/webhooks/deliveries` answers it. */

/** Where a run's end is told: an address, or an endpoint of the server's configuration. */
export type Webhook = string | { readonly url: string } | { readonly endpoint: string };

export type DeliveryStatus = 'pending' | 'delivered' | 'dead';

export interface Delivery {
  /** The `webhook-id` of every attempt. */
  readonly id: string;
  readonly run_id: string;
  /** Without its query; null for an endpoint. */
  readonly url: string | null;
  readonly endpoint: string | null;
  readonly status: DeliveryStatus;
  /** Those whose outcome is known. */
  readonly attempts: number;
  readonly last_attempt_at: string | null;
  readonly last_status: number | null;
  readonly last_error: string | null;
  readonly next_attempt_at: string | null;
  readonly created_at: string;
}

export interface DeliveriesRequest { readonly status?: DeliveryStatus; readonly run_id?: string; readonly limit?: number; readonly cursor?: string }
