/** What the API is given, and how it may be set. */
import type { AgentSpec, ChainSpec, WebhookTarget } from '@treadle/core';
import type { Arms, CanaryDeps, Clock, CronTimes, KeyDirectory, LogDeps, LogFollowers, ModelFleet, Randomness, RunDirectory, ScheduleDirectory, Tracer, WorkerRegistry } from '@treadle/engine';
import type { BoardQueues } from '@treadle/queue';
import type { IssuedKeys } from './auth/issued-keys.ts';
import type { KeyTable } from './auth/keys.ts';
import type { OpenStreams } from './events/open-streams.ts';
import type { ReadableArchive } from './store/guarded-store.ts';

export interface OfferedAgent { readonly spec: AgentSpec; /** `sha256:…` */ readonly version: string }

/** The agents that new runs may be made by. */
export interface AgentCatalogue {
  get(name: string): OfferedAgent | null;
  list(): readonly OfferedAgent[];
}

export interface Health {
  readonly ok: boolean;
  /** In words for people; shown to everybody, so no secrets and no addresses with passwords. */
  readonly problems: readonly string[];
  /** What is wrong and keeps no request from being served. */
  readonly warnings?: readonly string[];
}

/** Where requests and faults of ours go. Never handed a body, a header or a query. */
export interface ApiLogger {
  debug(fields: Readonly<Record<string, unknown>>, message: string): void;
  info(fields: Readonly<Record<string, unknown>>, message: string): void;
  warn(fields: Readonly<Record<string, unknown>>, message: string): void;
  error(fields: Readonly<Record<string, unknown>>, message: string): void;
}

/** `chains`: those of the configuration that have a trial. */
export type Trials = CanaryDeps & { readonly chains: readonly string[] };

export interface ApiDeps {
  /** May throw whatever its client library throws: see store/unavailable.ts. */
  readonly store: RunDirectory;
  readonly archive: ReadableArchive;
  /** In the same store. */
  readonly schedules: ScheduleDirectory;
  readonly cron: CronTimes;
  /** What is open and benched. */
  readonly fleet: Pick<ModelFleet, 'exchange' | 'open' | 'close' | 'unbench'>;
  /** Who works. */
  readonly workers: Pick<WorkerRegistry, 'list'>;
  /** Shown by the queue board; without them there is none. */
  readonly boardQueues?: BoardQueues['queues'];
  /** Made and fed (`listen`) by the composition root. */
  readonly followers: LogFollowers;
  /** Keys expire by it. */
  readonly clock: Clock;
  readonly random: Randomness;
  readonly agents: AgentCatalogue;
  /** A chain of the configuration, for runs that name one, and the names of all. */
  readonly chains?: (name: string) => ChainSpec | null;
  readonly chainNames?: readonly string[];
  /** Draws new runs for the trials of new models; without it nobody takes part in one. */
  readonly arms?: Arms;
  /** In words for people why a run's end cannot be told there; null where it can. Without it nobody is told. */
  readonly webhookProblem?: (target: WebhookTarget) => { readonly field: 'url' | 'endpoint'; readonly problem: string } | null;
  /** To look at the trials and to move them. */
  readonly trials?: Trials;
  /** Of the configuration. Null: no authentication, everybody is tenant `default` with every scope. */
  readonly keys: KeyTable | null;
  /** Those that were issued over the API. In the same store. */
  readonly issued: KeyDirectory;
  readonly health: () => Promise<Health>;
  /** In words for people why no new run is taken now; null where one is. */
  readonly full?: () => string | null;
  /** Prometheus text; without it there is no /metrics. */
  readonly metrics?: () => Promise<string>;
  readonly logger?: ApiLogger;
  /** Without it nobody traces. */
  readonly tracer?: Tracer;
  /** Called as things happen, for the metrics. */
  readonly observe?: { runCreated?(agent: string): void; sseClientOpened?(): void; sseClientGone?(): void };
}

export interface ApiOptions {
  /** How many shards new runs are spread over. */
  readonly shards: number;
  /** Shown in the OpenAPI file. Default `0.0.0`. */
  readonly version?: string;
  /** The agent of a request that names none. Default `assistant`. */
  readonly defaultAgent?: string;
  /** Default 1 MiB. */
  readonly maxBodyBytes?: number;
  /** Comment on an idle event stream. Default 15,000. */
  readonly heartbeatMs?: number;
  /** Bytes that may wait in this process for one reader before it counts as slow. Default 256 KiB. */
  readonly maxBufferedBytes?: number;
  /** How long a slow reader may take to read what waits for it. Default 30,000. */
  readonly drainTimeoutMs?: number;
  /** How long a request may take to arrive, head and body. Default 30,000. */
  readonly requestTimeoutMs?: number;
  /** Of one call to the store. Default 2,000. */
  readonly callTimeoutMs?: number;
  /** Of all calls to the store that one request makes. Default 4,000. */
  readonly requestBudgetMs?: number;
  /** How long after a write was asked for it may still happen, by the store's clock. Default 3,000. */
  readonly notAfterMs?: number;
  /** How long an event stream bears with a store that is away. Default 60,000. */
  readonly streamOutageMs?: number;
  /** Pause between two looks of an event stream at a store that is away. Default 1,000. */
  readonly streamRetryMs?: number;
  /** How often it is asked whether the key of an open stream, or of a wait, was revoked. Default 5,000. */
  readonly keyWatchMs?: number;
  /** How long open streams are given to end when the server closes. Default 2,000. */
  readonly closeGraceMs?: number;
}

export type Settings = Required<ApiOptions>;

export function settingsOf(options: ApiOptions): Settings {
  return {
    version: '0.0.0', defaultAgent: 'assistant', maxBodyBytes: 1024 * 1024, heartbeatMs: 15_000, maxBufferedBytes: 256 * 1024,
    drainTimeoutMs: 30_000, requestTimeoutMs: 30_000, callTimeoutMs: 2000, requestBudgetMs: 4000, notAfterMs: 3000, streamOutageMs: 60_000, streamRetryMs: 1000,
    keyWatchMs: 5000, closeGraceMs: 2000, ...options,
  };
}

/** What every route is made with. */
export interface ApiContext {
  readonly deps: ApiDeps;
  readonly settings: Settings;
  /** The store for one request: its budget begins now. */
  readonly store: () => RunDirectory;
  readonly schedules: () => ScheduleDirectory;
  readonly keys: () => KeyDirectory;
  readonly issuedKeys: IssuedKeys;
  /** Reading logs, each call bounded, the whole not. */
  readonly log: LogDeps & { readonly store: RunDirectory; readonly archive: ReadableArchive };
  readonly streams: OpenStreams;
}
