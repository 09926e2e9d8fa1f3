/**
 * The API process: everything it is made of, wired together.
 *
 * Owns: its connections to Redis, the feed it follows, the listening server. States: starting → serving → closing → closed.
 */
import { readFile } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { agentSpecOf, agentVersionOf, chainSpecOf, webhookEndpoints, type LoadedConfig, type Settings } from '@treadle/config';
import { insideOf } from '@treadle/egress';
import { createArchiveProbe, LogFollowers, shownWhenArchived, type RunStore, type Tracer } from '@treadle/engine';
import { openArchive } from '@treadle/event-archive';
import { cronTimes } from '@treadle/cron';
import { createCanaryStore, createKeyDirectory, createModelFleet, createWorkerRegistry } from '@treadle/fleet';
import { boardQueues, turnJobs } from '@treadle/queue';
import { connectRedis, createEventFeed, createRedisClock, createRedisStanding, createRunStore, createScheduleStore, describeRedis, inspectRedis, readinessProblems, whenReady, type RedisClock } from '@treadle/run-store';
import { createMetrics, watchEventLoop, type Logger, type Metrics } from '@treadle/telemetry';
import { targetProblem, type TargetRules } from '@treadle/webhooks';
import { uuidv7 } from 'uuidv7';
import { createKeyTable, loadKeys, type KeyTable } from './auth/keys.ts';
import { startTrials } from './chains/start-trials.ts';
import type { AgentCatalogue, ApiDeps } from './dependencies.ts';
import { createBacklogGuard } from './runs/backlog.ts';
import { createApiServer } from './server.ts';
import { guardedArchive, guardedStore } from './store/guarded-store.ts';

export interface ApiSetup {
  readonly settings: Settings;
  readonly config: LoadedConfig;
  readonly logger: Logger;
  readonly redisUrl: string;
  /** Where the file archive lies, if no bucket is set. */
  readonly archiveDir: string;
  /** Without it nobody traces. */
  readonly tracer?: Tracer;
  /** Puts something between the API and its store: tests break it there. */
  readonly decorate?: (store: RunStore) => RunStore;
}

export interface RunningApi {
  readonly url: string;
  close(): Promise<void>;
}

/** The API cannot be started as it is configured; one fault a line. */
export class UnfitApi extends Error {
  constructor(faults: readonly string[]) {
    super(faults.join('\n'));
    this.name = 'UnfitApi';
  }
}

/** Throws `UnfitApi` for what the configuration has wrong, and what listening throws. Waits for Redis to answer once. */
export async function startApi(setup: ApiSetup): Promise<RunningApi> {
  const { settings, logger } = setup;
  const keys = await keyTable(settings);
  let toldMs = -Infinity;
  const onError = (error: Error): void => {
    // A connection that is away fails many times a second.
    if (performance.now() - toldMs < 10_000) return;
    toldMs = performance.now();
    logger.warn({ err: error }, 'redis');
  };
  const first = connectRedis(setup.redisUrl, { role: 'command', onError });
  const inspection = await inspectRedis(first);
  const problem = inspection.problems.find((each) => each.severity === 'error');
  if (problem !== undefined) throw new UnfitApi([`REDIS_URL: ${problem.problem} (${problem.mend})`]);
  const clock = await createRedisClock(first);
  const redis = connectRedis(setup.redisUrl, { role: 'api', onError });
  // This connection keeps no queue: what is asked before it stands would be refused.
  await whenReady(redis);
  const strict = settings.archiveMode === 'strict';
  const store = (setup.decorate ?? ((each) => each))(createRunStore({ redis, jobs: turnJobs({ prefix: settings.prefix }) }, {
    prefix: settings.prefix, shards: settings.shards, ...(strict ? { archiveAfterMs: 0 } : {}),
  }));
  const { archive, description } = openArchive({
    bucket: settings.s3Bucket, endpoint: settings.s3Endpoint, region: settings.s3Region, access_key_id: settings.s3AccessKeyId,
    secret_access_key: settings.s3SecretAccessKey, prefix: settings.s3Prefix ?? '', dir: setup.archiveDir,
  });
  const metrics = createMetrics('api');
  const readable = strict ? shownWhenArchived({ store, archive: guardedArchive(archive, archiveTimeoutMs) }) : store;
  const followers = new LogFollowers({ store: guardedStore(readable, { callTimeoutMs: 2000 }), archive: guardedArchive(archive, archiveTimeoutMs) });
  const stop = new AbortController();
  const feed = createEventFeed({ connect: () => connectRedis(setup.redisUrl, { role: 'blocking', onError }) }, { prefix: settings.prefix, shards: settings.shards });
  const listening = followers.listen(feed, stop.signal).catch((error: unknown) => { logger.error({ err: error }, 'the event feed has ended'); });
  const stopWatching = keepMeasuring({ clock, redis, metrics });
  const backlog = createBacklogGuard(store, { shards: settings.shards, most: settings.archiveBacklog });
  const trials = await startTrials({ canaries: createCanaryStore(redis, { prefix: settings.prefix }), config: setup.config, metrics, logger });

  const probe = createArchiveProbe(archive, { monotonicMs: () => performance.now(), onFailure: (error) => { logger.warn({ err: error }, 'the archive takes no writes'); } });

  const standing = createRedisStanding(redis, { monotonicMs: () => performance.now() });

  const board = boardQueues({ redis, prefix: settings.prefix, shards: settings.shards, onError });

  const deps: ApiDeps = {
    boardQueues: board.queues,
    store: readable, archive, schedules: createScheduleStore({ redis, jobs: turnJobs({ prefix: settings.prefix }) }, { prefix: settings.prefix, shards: settings.shards }), cron: cronTimes,
    fleet: createModelFleet({ redis, prefix: settings.prefix }), workers: createWorkerRegistry(redis, { prefix: settings.prefix }), followers, clock, random: { uuid: uuidv7, jitter: Math.random }, agents: catalogueOf(setup.config), chains: (name) => chainSpecOf(setup.config, name) ?? null, chainNames: Object.keys(setup.config.chains), keys, issued: createKeyDirectory(redis, { prefix: settings.prefix }), logger, ...trials.deps, webhookProblem: (target) => targetProblem(target, webhookRules(setup)), ...(setup.tracer === undefined ? {} : { tracer: setup.tracer }),
    health: async () => {
      const [inRedis, found, inArchive] = await Promise.all([readinessProblems(redis, settings), standing.look(), probe.problem()]);
      const problems = [...inRedis, ...found.problems];
      // Runs are accepted and followed without it.
      return { ok: problems.length === 0, problems, warnings: [...found.warnings, ...inArchive === null ? [] : [inArchive]] };
    },
    full: () => backlog.full(),
    metrics: () => metrics.registry.metrics(), observe: {
      runCreated: (agent) => { metrics.runsCreated.inc({ agent }); }, sseClientOpened: () => { metrics.sseClients.inc(); }, sseClientGone: () => { metrics.sseClients.dec(); },
    },
  };
  const server = createApiServer(deps, { shards: settings.shards, version: await packageVersion() });
  await server.listen({ host: settings.host, port: settings.port });
  const { port } = server.server.address() as AddressInfo;
  logger.info({ redis: describeRedis(inspection), archive: description, port }, 'API ready');
  return {
    url: `http://${settings.host.includes(':') ? `[${settings.host}]` : settings.host}:${port}`,
    close: async () => {
      await server.close();
      await board.close().catch(() => undefined);
      stop.abort();
      backlog.stop();
      trials.stop();
      stopWatching();
      await listening;
      redis.disconnect();
      first.disconnect();
    },
  };
}

function webhookRules({ config, settings }: ApiSetup): TargetRules {
  return { endpoints: webhookEndpoints(config), signsOthers: settings.webhookSecret !== null, allow: config.egress.allow, insideOf };
}

const clockEveryMs = 10_000;
const roundTripEveryMs = 1000;
const archiveTimeoutMs = 4000;

/** The clock's distance from Redis, the round trip to it and the lag of the event loop, until the function that is returned is called. */
function keepMeasuring(of: { clock: RedisClock; redis: ReturnType<typeof connectRedis>; metrics: Metrics }): () => void {
  const refresh = setInterval(() => { of.clock.refresh().catch(() => undefined); }, clockEveryMs).unref();
  const roundTrips = setInterval(() => {
    const startMs = performance.now();
    of.redis.ping().then(() => { of.metrics.redisRoundTrip.observe((performance.now() - startMs) / 1000); }, () => undefined);
  }, roundTripEveryMs).unref();
  const stopWatching = watchEventLoop(of.metrics);
  return () => {
    clearInterval(refresh);
    clearInterval(roundTrips);
    stopWatching();
  };
}

async function packageVersion(): Promise<string> {
  const text = await readFile(new URL('../package.json', import.meta.url), 'utf8');
  return (JSON.parse(text) as { version: string }).version;
}

async function keyTable(settings: Settings): Promise<KeyTable | null> {
  if (settings.auth === 'off') return null;
  const keysFileText = settings.keysFile === null ? null : await readFile(settings.keysFile, 'utf8').catch((error: unknown) => {
    throw new UnfitApi([`TREADLE_KEYS_FILE: cannot be read: ${error instanceof Error ? error.message : String(error)}`]);
  });
  const loaded = loadKeys({ adminKey: settings.adminKey, keysFileText });
  if (loaded.type === 'invalid') throw new UnfitApi(loaded.problems.map((each) => `${each.path.startsWith('TREADLE_') ? '' : 'TREADLE_KEYS_FILE: '}${each.path}: ${each.problem}`));
  if (loaded.keys.length === 0) throw new UnfitApi(['TREADLE_AUTH: keys are asked for, but there are none; set TREADLE_ADMIN_KEY or TREADLE_KEYS_FILE']);
  return createKeyTable(loaded.keys);
}

function catalogueOf(config: LoadedConfig): AgentCatalogue {
  const agents = new Map(Object.keys(config.agents).flatMap((name) => {
    const spec = agentSpecOf(config, name);
    return spec === undefined ? [] : [[name, { spec, version: agentVersionOf(spec) }] as const];
  }));
  return { get: (name) => agents.get(name) ?? null, list: () => [...agents.values()] };
}
