/** Who is asking, and whether they may: before a body is read, from the header alone. */
import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { Clock } from '@treadle/engine';
import type { ApiContext } from '../dependencies.ts';
import { Problem } from '../problem.ts';
import type { IssuedKeys } from './issued-keys.ts';
import { mayUse, type KeyTable, type Principal, type Scope } from './keys.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** Set before any handler of a route that has a scope. */
    principal: Holder | null;
  }
  interface FastifyContextConfig {
    /** What the key must allow; `public` asks for no key. Every route under /v1 says it. */
    scope?: Scope | 'public';
    /** The key may come as the password of Basic, for pages that a browser opens. */
    basic?: boolean;
  }
}

/** `holds`: whether the key is still one; of the configuration's keys, which are read when a process starts, there is no such question. */
interface Holder extends Principal { readonly holds?: () => Promise<boolean> }

/** Everybody, where authentication is off: allowed on loopback alone, which the environment's check sees to. */
const anybody: Holder = { tenant: 'default', scopes: ['admin'], name: null, expires_at_ms: null };

/** `deps.keys` null switches authentication off. */
export function authenticate(app: FastifyInstance, context: Pick<ApiContext, 'deps' | 'issuedKeys'>): void {
  app.decorateRequest('principal', null);
  app.addHook('onRoute', (route) => {
    const { url, config } = route;
    if (url.startsWith('/v1') && config?.scope === undefined) throw new TypeError(`the route ${url} says no scope`);
  });
  app.addHook('onRequest', async (request) => {
    const scope = request.routeOptions.config.scope ?? 'public';
    if (scope === 'public') return;
    const principal = context.deps.keys === null ? anybody : await principalOf(request, { ...context.deps, issued: context.issuedKeys, keys: context.deps.keys });
    if (!mayUse(principal, scope)) {
      throw new Problem({ status: 403, code: 'forbidden', detail: `This API key lacks the scope "${scope}".` });
    }
    request.principal = principal;
  });
}

/** The tenant that owns whatever this request touches. Comes from the key, never from the request. */
export function tenantOf(request: FastifyRequest): string {
  if (request.principal === null) throw new TypeError('a route without a scope has no tenant');
  return request.principal.tenant;
}

/** Timers can count no further; what ends then is asked for again. */
const maxTimerMs = 2 ** 31 - 1;

/** Calls `over` once the key of this request has expired or was revoked. Answers what ends the watch. */
export function watchKey(request: FastifyRequest, { deps: { clock }, settings: { keyWatchMs } }: Pick<ApiContext, 'deps' | 'settings'>, over: () => void): () => void {
  const { expires_at_ms = null, holds } = request.principal ?? {};
  const expiry = expires_at_ms === null ? undefined : setTimeout(over, Math.min(maxTimerMs, expires_at_ms - clock.nowMs())).unref();
  const looking = holds === undefined ? undefined : setInterval(() => {
    // A store that does not answer has not said that it was revoked.
    holds().then((held) => { if (!held) over(); }, () => undefined);
  }, keyWatchMs).unref();
  return () => {
    clearTimeout(expiry);
    clearInterval(looking);
  };
}

/** Who changes something, for the log: the key's name where it has one, else its tenant. */
export function actorOf(request: FastifyRequest): string {
  return request.principal?.name ?? tenantOf(request);
}

interface Known { readonly keys: KeyTable; readonly issued: IssuedKeys; readonly clock: Clock }

async function principalOf(request: FastifyRequest, { keys, issued, clock }: Known): Promise<Holder> {
  const { authorization = '' } = request.headers;
  const basic = request.routeOptions.config.basic === true;
  const token = /^Bearer +([\x21-\x7e]{1,512}) *$/i.exec(authorization)?.[1] ?? (basic ? passwordOf(authorization) : undefined);
  if (token === undefined && basic) throw unauthorized('Give an API key with the scope "admin" as the password.', 'Basic realm="treadle", charset="UTF-8"');
  if (token === undefined) throw unauthorized('Give an API key: Authorization: Bearer tk_…', 'Bearer realm="treadle"');
  const configured = keys.find(token, clock.nowMs());
  if (configured !== null) return configured;
  const principal = await issued.find(token, clock.nowMs());
  if (principal === null) throw unauthorized('This API key is unknown or has expired.', basic ? 'Basic realm="treadle", charset="UTF-8"' : 'Bearer realm="treadle", error="invalid_token"');
  return { ...principal, holds: async () => await issued.find(token, clock.nowMs()) !== null };
}

function passwordOf(authorization: string): string | undefined {
  const pair = /^Basic +([A-Za-z0-9+/=]{1,1024}) *$/i.exec(authorization)?.[1];
  return pair === undefined ? undefined : /^[^:]*:([\x21-\x7e]{1,512})$/.exec(Buffer.from(pair, 'base64').toString())?.[1];
}

function unauthorized(detail: string, challenge: string): Problem {
  return new Problem({ status: 401, code: 'unauthorized', detail, headers: { 'www-authenticate': challenge } });
}
