/** GET /v1/workers: who works, as each said last. Of the installation, not of a tenant: every key may look. */
import type { SeenWorker } from '@treadle/engine';
import { z } from 'zod';
import type { ApiContext } from '../dependencies.ts';
import { json, pageOf, problems, type ApiInstance } from '../server/api-types.ts';
import { within } from '../store/guarded-store.ts';
import { StoreUnavailable, storeUnavailable } from '../store/unavailable.ts';

const workerSchema = z.strictObject({
  name: z.string().describe('As in the events of the turns that it takes.'), role: z.literal('worker'), version: z.string(), agent_versions: z.array(z.string()).describe('Of the agents that it is configured with, as runs name them.'), state: z.enum(['running', 'draining']),
  concurrency: z.int().describe('Turns at once, at most.'), turns_in_flight: z.int(), load: z.number().describe('Turns in flight of those at most, 0 to 1.'),
  started_at: z.string().describe('ISO 8601, UTC'), last_seen_at: z.string().describe('It speaks every 5 s; after a minute of silence it is no longer listed.'),
});

export function workerRoutes(app: ApiInstance, { deps, settings }: ApiContext): void {
  app.get('/v1/workers', {
    config: { scope: 'read' },
    schema: {
      tags: ['workers'], summary: 'Who works', operationId: 'listWorkers', querystring: z.strictObject({}),
      response: { 200: json('All that were heard of within a minute', pageOf(workerSchema)), ...problems(422) },
    },
  }, async () => {
    try {
      const workers = await within(deps.workers.list(), settings.callTimeoutMs, () => new StoreUnavailable('the store did not answer in time', { sent: true }));
      return { data: workers.map(entryOf), next_cursor: null };
    } catch (error) {
      throw storeUnavailable(error) ?? error;
    }
  });
}

function entryOf({ name, version, agent_versions = [], state, concurrency, turns_in_flight, started_at_ms, last_seen_ms }: SeenWorker): z.output<typeof workerSchema> {
  return {
    name, role: 'worker', version, agent_versions: [...agent_versions], state, concurrency, turns_in_flight, load: concurrency === 0 ? 0 : Math.min(1, turns_in_flight / concurrency),
    started_at: new Date(started_at_ms).toISOString(), last_seen_at: new Date(last_seen_ms).toISOString(),
  };
}
