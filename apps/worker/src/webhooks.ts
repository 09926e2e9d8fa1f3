/** This worker's share of telling others of ended runs: what it sends with, how much at once, and what it says of it. */
import type { LoadedConfig, Settings } from '@treadle/config';
import { webhookEndpoints } from '@treadle/config';
import { createEgress } from '@treadle/egress';
import { WebhookDispatcher, type Clock, type RunStore } from '@treadle/engine';
import type { Logger, Metrics } from '@treadle/telemetry';
import { createWebhookSender } from '@treadle/webhooks';

/** Attempts at once in this process, of one tenant, and of one endpoint or origin of his. */
const concurrency = 16;
const perTenant = 8;
const perLane = 2;

export interface WebhookParts {
  readonly settings: Settings;
  readonly config: LoadedConfig;
  readonly store: RunStore;
  readonly clock: Pick<Clock, 'nowMs'>;
  readonly metrics: Metrics;
  readonly logger: Logger;
  readonly version: string;
}

export function createWebhooks({ settings, config, store, clock, metrics, logger, version }: WebhookParts): WebhookDispatcher {
  const sender = createWebhookSender({
    fetch: createEgress({ allow: config.egress.allow }), endpoints: webhookEndpoints(config), version, nowMs: () => clock.nowMs(),
    others: settings.webhookSecret === null ? null : { secret: settings.webhookSecret, previous_secret: settings.webhookPreviousSecret ?? undefined },
  });
  return new WebhookDispatcher({
    outbox: store, sender, jitter: Math.random, ...(settings.archiveMode === 'strict' ? { mayTell: (run_id: string) => isArchived(store, run_id) } : {}),
    onOutcome: (outcome, { run_id, attempt, why }) => {
      metrics.webhookDeliveries.inc({ outcome });
      if (outcome === 'delivered') logger.debug({ run_id, attempt }, 'webhook delivered');
      else if (outcome === 'failed') logger.info({ run_id, attempt, why }, 'webhook failed; it is sent again');
      else logger.warn({ run_id, attempt, why }, 'webhook is dead: it is not sent again unless somebody asks for it');
    },
    onFailure: (error) => { logger.warn({ err: error }, 'what became of a webhook could not be written down; it is sent again'); },
  }, {
    shards: Array.from({ length: settings.shards }, (_, shard) => shard), concurrency, per_tenant: perTenant, per_lane: perLane, timeout_ms: settings.webhookTimeoutMs, first_wait_ms: settings.webhookRetryMs,
  });
}

/** What nobody is shown yet, nobody is told of. A run that has left the store had been archived. */
async function isArchived(store: Pick<RunStore, 'read'>, run_id: string): Promise<boolean> {
  const snapshot = await store.read(run_id, 'messages');
  return snapshot === null || snapshot.archived_seq >= snapshot.stored.last_seq;
}
