/** Routes of the contract that a later release builds: refused by name, never accepted and ignored. */
import type { Scope } from './auth/keys.ts';
import { Problem } from './problem.ts';
import type { ApiInstance } from './server/api-types.ts';

/** Method, path, and what it will ask for. */
export const notBuiltRoutes: readonly (readonly [method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE', path: string, scope: Scope])[] = [
  ['POST', '/v1/keys', 'admin'],
  ['GET', '/v1/keys', 'admin'],
  ['DELETE', '/v1/keys', 'admin'],
  ['DELETE', '/v1/keys/:key_id', 'admin'],
];

export function notBuilt(app: ApiInstance): void {
  for (const [method, url, scope] of notBuiltRoutes) {
    app.route({
      method, url, config: { scope }, schema: { hide: true },
      handler: () => { throw new Problem({ status: 501, code: 'not_supported', detail: `${method} ${url} is not built yet.` }); },
    });
  }
}
