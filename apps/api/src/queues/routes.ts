/**
 * /queues: a board of the shards' queues, for people with the scope `admin`. A browser asks for the API key as a password (any user name).
 *
 * 1. Every page, file and call of the board asks for the key.
 * 2. Nothing can be changed: whatever is not a GET or HEAD is refused before the board hears of it.
 */
import { createBullBoard } from '@bull-board/api';
import { FastifyAdapter } from '@bull-board/fastify';
import type { ApiContext } from '../dependencies.ts';
import { Problem } from '../problem.ts';
import type { ApiInstance } from '../server/api-types.ts';

const at = '/queues';

export function queueRoutes(app: ApiInstance, { deps }: ApiContext): void {
  const { boardQueues } = deps;
  if (boardQueues === undefined) return;
  const board = new FastifyAdapter();
  board.setBasePath(at);
  createBullBoard({ queues: [...boardQueues], serverAdapter: board, options: { uiConfig: { boardTitle: 'Treadle' } } });
  void app.register(async (instance) => {
    instance.addHook('onRoute', (route) => {
      route.config = { ...route.config, scope: 'admin', basic: true };
      route.schema = { ...route.schema, hide: true };
    });
    instance.addHook('onRequest', async (request) => {
      if (request.method !== 'GET' && request.method !== 'HEAD') throw new Problem({ status: 403, code: 'forbidden', detail: 'The board only shows; runs are changed by their own routes.' });
    });
    const plugin = board.registerPlugin();
    await instance.register((child, options, done) => {
      // Its own answer to errors would leave out that a key is asked for: problems are answered as everywhere else.
      Object.assign(child, { setErrorHandler: () => child });
      plugin(child as unknown as Parameters<typeof plugin>[0], options, done);
    }, { prefix: at });
  });
}
