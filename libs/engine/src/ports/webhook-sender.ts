/** What sends a delivery: it knows where endpoints lie and what signs them. */
import type { WebhookAnswer, WebhookTarget } from '@treadle/core';

export interface WebhookSending {
  /** The same at each attempt. */
  readonly id: string;
  readonly target: WebhookTarget;
  readonly body: string;
  readonly signal: AbortSignal;
}

export interface WebhookSender {
  /**
   * One attempt, signed and stamped anew, until the signal. Never throws, and says nothing in `why` that must not be shown. What this process
   * has no address or no secret for is not sent, and has failed.
   */
  send(sending: WebhookSending): Promise<WebhookAnswer>;
}
