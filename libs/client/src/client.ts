/**
 * The client of the HTTP API. Every call is one request; `events` is as many as it takes.
 */
import type { RunEvent } from '@treadle/core';
import type { Canary, CanaryOrder, ListedChain, ListedModel } from './canary.ts';
import { keysOf, type KeysOfClient } from './keys.ts';
import { schedulesOf, type SchedulesOfClient } from './schedules.ts';
import { createSseParser } from './sse.ts';
import type { UsageReport, UsageRequest } from './usage.ts';
import type { DeliveriesRequest, Delivery, Webhook } from './webhooks.ts';

export interface ClientOptions {
  /** Of the API, e.g. `http://127.0.0.1:8080`. */
  readonly url: string;
  readonly apiKey?: string | undefined;
  /** For tests; default the global one. */
  readonly fetch?: typeof fetch;
  /** Between two tries to reach the event stream again, ms. Default 500. */
  readonly reconnectMs?: number;
  /** How long an event stream bears with a server that cannot be reached, ms. Default 60,000. */
  readonly outageMs?: number;
}

export interface RunRequest {
  readonly agent?: string;
  readonly input: unknown;
  /** Null for no limit, where a limit may be unset. */
  readonly limits?: Readonly<Record<string, number | null>>;
  readonly metadata?: Readonly<Record<string, unknown>>;
  readonly tags?: readonly string[];
  readonly priority?: number;
  readonly run_at?: string;
  /** The run goes on from what the session has said. */
  readonly session_id?: string;
  readonly on_busy?: 'reject' | 'queue' | 'interrupt' | 'steer';
  /** Another chain than the agent's. */
  readonly chain?: string;
  /** Told, signed, once the run has ended. */
  readonly webhook?: Webhook;
}

/** The run as the API answers it (contract, section 5). */
export interface Run {
  readonly id: string;
  readonly agent: string;
  readonly status: 'queued' | 'running' | 'paused' | 'completed' | 'expired' | 'failed' | 'cancelled';
  readonly stop_reason: string | null;
  readonly answer: string | null;
  readonly turn_number: number;
  readonly tool_calls: number;
  readonly usage: {
    readonly input_tokens: number; readonly output_tokens: number; readonly cached_tokens: number; readonly wasted_tokens: number; readonly cost_usd: number;
    readonly wasted_cost_usd?: number;
  };
  readonly error: { readonly error_type: string; readonly message: string; readonly detail: string } | null;
  readonly last_seq: number;
  readonly created_at: string;
  readonly started_at: string | null;
  readonly ended_at: string | null;
  readonly [field: string]: unknown;
}

/** What is not asked now: an open breaker, or a key or model on its bench. */
export interface Breaker {
  readonly id: string;
  readonly kind: 'breaker' | 'bench';
  /** `model:<name>`, `host:<host:port>` or `credential:<fingerprint>`. */
  readonly breaker: string;
  readonly error_type: string;
  readonly state: 'closed' | 'half_open' | 'open';
  readonly forced: boolean;
  readonly opened_at: string | null;
  /** Null: when a person resets it. */
  readonly probe_at: string | null;
  readonly openings: number;
}

/** A run, the call that has started it (null at the top), and what it has started itself. */
export interface RunTree { readonly run: Run; readonly tool_use_id: string | null; readonly children: readonly RunTree[] }

/** What the API refused, with its stable code. */
export class ApiError extends Error {
  readonly status: number;
  readonly code: string;
  readonly problems: readonly { readonly path: string; readonly problem: string }[];

  constructor(status: number, body: { code?: string; detail?: string; title?: string; errors?: { path: string; problem: string }[] }) {
    super(body.detail ?? body.title ?? `status ${status}`);
    this.name = 'ApiError';
    this.status = status;
    this.code = body.code ?? 'internal';
    this.problems = body.errors ?? [];
  }
}

/** The server could not be reached. */
export class ServerUnreachable extends Error {
  constructor(url: string, cause: unknown) {
    super(`cannot reach ${url}`, { cause });
    this.name = 'ServerUnreachable';
  }
}

/** The store has lost its last writes: what was given beyond `last_seq` is void. The log goes on from there: ask for `events` after it. */
export class LogReset extends Error {
  readonly last_seq: number;

  constructor(id: string, last_seq: number) {
    super(`the log of ${id} was set back to event ${last_seq}; what followed is lost`);
    this.name = 'LogReset';
    this.last_seq = last_seq;
  }
}

/** Given again with the same key, a command is the same command, also after the run has ended. */
export interface CommandOptions { readonly idempotencyKey?: string }

/** At least one of them. */
export type RunChange = Pick<RunRequest, 'limits' | 'metadata' | 'tags'>;

/** At least one of them, or `all`. */
export interface CancelFilter {
  readonly all?: true;
  readonly status?: 'queued' | 'running' | 'paused';
  readonly agent?: string;
  readonly model?: string;
  readonly tag?: string;
  readonly session_id?: string;
  readonly metadata?: Readonly<Record<string, string | number | boolean | null>>;
  readonly created_after?: string;
  readonly created_before?: string;
  readonly cursor?: string;
}

export interface Client extends KeysOfClient, SchedulesOfClient {
  createRun(request: RunRequest, options?: { readonly idempotencyKey?: string }): Promise<Run>;
  /** All of them or, where one is refused, none; in their order. With a key an interrupted batch is completed by asking again. */
  createRuns(requests: readonly RunRequest[], options?: { readonly idempotencyKey?: string }): Promise<readonly Run[]>;
  run(id: string): Promise<Run>;
  /** The run and the runs that it and they have started. */
  tree(id: string): Promise<RunTree & { readonly truncated: boolean }>;
  runs(query?: Readonly<Record<string, string>>): Promise<{ readonly data: readonly Run[]; readonly next_cursor: string | null }>;
  wait(id: string, timeoutMs: number): Promise<Run>;
  cancel(id: string, options?: CommandOptions): Promise<Run>;
  /** The live runs that the filter names, up to a thousand; where `next_cursor` is not null, ask again with it. */
  cancelRuns(filter: CancelFilter): Promise<{ readonly cancelled: number; readonly run_ids: readonly string[]; readonly next_cursor: string | null }>;
  /** At the run's next safe point. */
  pause(id: string, options?: CommandOptions): Promise<Run>;
  resume(id: string, options?: CommandOptions & { /** A text or content parts for the model. */ readonly input?: unknown }): Promise<Run>;
  /** Text for the model, 1 to 32 KiB; tools are not stopped. */
  steer(id: string, text: string, options?: CommandOptions): Promise<Run>;
  /** Metadata and tags take the place of what is there; limits go up to the agent's maxima. */
  update(id: string, change: RunChange, options?: CommandOptions): Promise<Run>;
  /** Of a run that has ended. Nobody can read it any more; asked again, it is answered as the first time. */
  remove(id: string): Promise<{ readonly id: string; readonly deleted_at: string }>;
  /** An operator's word on a call in doubt; the model gets `content` as its result. The first word counts. */
  resolve(id: string, tool_use_id: string, word: { readonly outcome: 'happened' | 'did_not_happen'; readonly content?: string }, options?: CommandOptions): Promise<Run>;
  /** A person's word on a call that waits for approval; the first one counts. `input`: what is approved instead. `digest`: only if the call is still the one that was seen. */
  approve(id: string, tool_use_id: string, word?: { readonly input?: Readonly<Record<string, unknown>>; readonly reason?: string; readonly digest?: string }, options?: CommandOptions): Promise<Run>;
  /** The model is told, with the reason; the call is not carried out. */
  deny(id: string, tool_use_id: string, word?: { readonly reason?: string; readonly digest?: string }, options?: CommandOptions): Promise<Run>;
  /** A new run from a point of this one's log; without an input the model is asked again what it was asked last. */
  fork(id: string, from: { readonly after_seq: number; readonly input?: unknown; readonly chain?: string; readonly limits?: RunRequest['limits']; readonly webhook?: Webhook }, options?: CommandOptions): Promise<Run>;
  replay(id: string): Promise<{ readonly identical: boolean; readonly events: number; readonly differences: readonly unknown[] }>;
  models(): Promise<{ readonly data: readonly ListedModel[] }>;
  chains(): Promise<{ readonly data: readonly ListedChain[] }>;
  /** The trial of a new model in a chain. */
  canary(chain: string): Promise<Canary>;
  /** The trial as it is then. */
  moveCanary(chain: string, order: CanaryOrder): Promise<Canary>;
  breakers(): Promise<{ readonly data: readonly Breaker[]; readonly next_cursor: string | null }>;
  /** `open`: until it is reset. `reset`: a breaker or a bench. */
  changeBreaker(id: string, action: 'open' | 'reset'): Promise<Pick<Breaker, 'id' | 'kind' | 'state' | 'forced'>>;
  /** What ended runs of this key's tenant have used. */
  usage(asked?: UsageRequest): Promise<UsageReport>;
  /** What was told of ended runs, of the newest runs first. */
  deliveries(asked?: DeliveriesRequest): Promise<{ readonly data: readonly Delivery[]; readonly next_cursor: string | null }>;
  /** Of one that has ended, or waits for its next attempt; under the same id. */
  redeliver(id: string): Promise<Delivery>;
  /** Any other route of the API. */
  get(path: string): Promise<unknown>;
  /** Every event after `after`, in order and once, until the run has ended; lost connections are resumed. Throws `LogReset` where the log was set back. */
  events(id: string, options?: { readonly after?: number; readonly signal?: AbortSignal }): AsyncGenerator<RunEvent>;
}

/** Calls throw `ApiError` for what the API refuses, `ServerUnreachable` where there is none. */
export function createClient(options: ClientOptions): Client {
  const http = options.fetch ?? fetch;
  const base = options.url.replace(/\/+$/, '');
  const auth: Record<string, string> = options.apiKey === undefined ? {} : { authorization: `Bearer ${options.apiKey}` };

  async function send(method: string, path: string, init: { body?: unknown; headers?: Record<string, string>; signal?: AbortSignal } = {}): Promise<Response> {
    const body = init.body === undefined ? {} : { body: JSON.stringify(init.body), headers: { ...auth, ...init.headers, 'content-type': 'application/json' } };
    const request: RequestInit = { method, headers: { ...auth, ...init.headers }, ...body, ...(init.signal === undefined ? {} : { signal: init.signal }) };
    const response = await http(`${base}${path}`, request).catch((error: unknown) => { throw new ServerUnreachable(base, error); });
    if (response.ok) return response;
    throw new ApiError(response.status, await response.json().catch(() => ({})) as object);
  }

  const json = async <T>(method: string, path: string, init?: Parameters<typeof send>[2]): Promise<T> => (await send(method, path, init)).json() as Promise<T>;

  return {
    ...keysOf(json),
    ...schedulesOf(json),
    createRun: (request, { idempotencyKey } = {}) => json('POST', '/v1/runs', {
      body: request, ...(idempotencyKey === undefined ? {} : { headers: { 'idempotency-key': idempotencyKey } }) }),
    createRuns: async (runs, options) => (await json<{ data: readonly Run[] }>('POST', '/v1/runs/batch', { body: { runs }, ...keyed(options) })).data,
    cancelRuns: (filter) => json('POST', '/v1/runs/cancel', { body: filter }),
    run: (id) => json('GET', `/v1/runs/${encodeURIComponent(id)}`),
    tree: (id) => json('GET', `/v1/runs/${encodeURIComponent(id)}/tree`),
    runs: (query = {}) => json('GET', `/v1/runs?${new URLSearchParams(query).toString()}`),
    wait: (id, timeoutMs) => json('GET', `/v1/runs/${encodeURIComponent(id)}/wait?timeout_ms=${timeoutMs}`),
    cancel: (id, command) => json('POST', `/v1/runs/${encodeURIComponent(id)}/cancel`, keyed(command)),
    pause: (id, command) => json('POST', `/v1/runs/${encodeURIComponent(id)}/pause`, keyed(command)),
    resume: (id, command) => json('POST', `/v1/runs/${encodeURIComponent(id)}/resume`, {
      ...keyed(command), ...(command?.input === undefined ? {} : { body: { input: command.input } }) }),
    steer: (id, text, command) => json('POST', `/v1/runs/${encodeURIComponent(id)}/steer`, { ...keyed(command), body: { text } }),
    update: (id, change, command) => json('PATCH', `/v1/runs/${encodeURIComponent(id)}`, { ...keyed(command), body: change }),
    remove: (id) => json('DELETE', `/v1/runs/${encodeURIComponent(id)}`),
    resolve: (id, call, word, command) => json('POST', `/v1/runs/${encodeURIComponent(id)}/ledger/${encodeURIComponent(call)}`, { ...keyed(command), body: word }),
    approve: (id, call, word, command) => json('POST', approvalOf(id, call), { ...keyed(command), body: { decision: 'approve', ...word } }),
    deny: (id, call, word, command) => json('POST', approvalOf(id, call), { ...keyed(command), body: { decision: 'deny', ...word } }),
    fork: (id, from, command) => json('POST', `/v1/runs/${encodeURIComponent(id)}/fork`, { ...keyed(command), body: from }),
    replay: (id) => json('POST', `/v1/runs/${encodeURIComponent(id)}/replay`),
    models: () => json('GET', '/v1/models'),
    chains: () => json('GET', '/v1/chains'),
    canary: (chain) => json('GET', `/v1/chains/${encodeURIComponent(chain)}/canary`),
    moveCanary: (chain, order) => json('PUT', `/v1/chains/${encodeURIComponent(chain)}/canary`, { body: order }),
    breakers: () => json('GET', '/v1/breakers'),
    changeBreaker: (id, action) => json('POST', `/v1/breakers/${encodeURIComponent(id)}`, { body: { action } }),
    usage: (asked = {}) => json('GET', `/v1/usage?${new URLSearchParams({ ...asked }).toString()}`),
    deliveries: (asked = {}) => json('GET', `/v1/webhooks/deliveries?${new URLSearchParams(Object.entries(asked).map(([name, value]): [string, string] => [name, String(value)])).toString()}`),
    redeliver: (id) => json('POST', `/v1/webhooks/deliveries/${encodeURIComponent(id)}/redeliver`),
    get: (path) => json('GET', path),
    events: (id, follow = {}) => resuming(id, { send, after: follow.after ?? 0, signal: follow.signal, pauseMs: options.reconnectMs ?? 500, outageMs: options.outageMs ?? 60_000 }),
  };
}

function approvalOf(id: string, call: string): string {
  return `/v1/runs/${encodeURIComponent(id)}/approvals/${encodeURIComponent(call)}`;
}

function keyed(options: CommandOptions | undefined): { headers?: Record<string, string> } {
  return options?.idempotencyKey === undefined ? {} : { headers: { 'idempotency-key': options.idempotencyKey } };
}

interface Resuming {
  readonly send: (method: string, path: string, init: { headers: Record<string, string>; signal?: AbortSignal }) => Promise<Response>;
  readonly after: number;
  readonly signal: AbortSignal | undefined;
  readonly pauseMs: number;
  readonly outageMs: number;
}

async function* resuming(id: string, { send, after, signal, pauseMs, outageMs }: Resuming): AsyncGenerator<RunEvent> {
  let last = after;
  let epoch: number | null = null;
  let reachedMs = Date.now();
  const aborted = (): boolean => signal?.aborted ?? false;
  while (!aborted()) {
    try {
      const headers = { accept: 'text/event-stream', 'last-event-id': String(last), ...(epoch === null ? {} : { 'treadle-last-epoch': String(epoch) }) };
      const response = await send('GET', `/v1/runs/${encodeURIComponent(id)}/events`, { headers, ...(signal === undefined ? {} : { signal }) });
      reachedMs = Date.now();
      // Nothing follows what is known already: the run has ended.
      if (response.status === 204) return;
      for await (const event of eventsOf(response)) {
        reachedMs = Date.now();
        if (event.type === 'reset') throw new LogReset(id, event.last_seq);
        if (event.seq <= last) continue;
        last = event.seq;
        epoch = event.epoch;
        yield event;
        if (event.type === 'run_end') return;
      }
    } catch (error) {
      // What the server refuses it will refuse again; everything else is a connection to be made anew.
      if (error instanceof LogReset || (error instanceof ApiError && (error.status < 500 || error.status === 501))) throw error;
      if (Date.now() - reachedMs > outageMs) throw error;
      if (aborted()) return;
    }
    await new Promise((resolve) => { setTimeout(resolve, pauseMs); });
  }
}

async function* eventsOf(response: Response): AsyncGenerator<RunEvent | { readonly type: 'reset'; readonly last_seq: number }> {
  const parse = createSseParser();
  if (response.body === null) return;
  for await (const chunk of response.body) {
    for (const message of parse(chunk as Uint8Array)) {
      if (message.id !== null) yield JSON.parse(message.data) as RunEvent | { type: 'reset'; last_seq: number };
    }
  }
}
