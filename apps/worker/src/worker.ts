/**
 * A worker process: takes jobs, executes one turn for each, and does its share of the store's upkeep.
 *
 * Owns: its connections, the runs in its hands, its ticks. States: running → draining → stopped.
 * Holds nothing between jobs that another worker could not find in the store.
 */
import { readFile } from 'node:fs/promises';
import { initialState, restoreState, type Message } from '@treadle/core';
import { agentSpecOf, agentVersionOf, hookFunctions, modelConnections, modelPrices, validatorFunctions, type LoadedConfig, type Settings } from '@treadle/config';
import {
  archiveDue, archiveFirst, archiveRun, createArchiveProbe, createChildRuns, executeTurn, finishRun, foldLog, HeldRuns, IncrementWriter, noIncrements, WarmRuns, type Archive, type Arms, type ArchiveDeps, type FinishDeps, type Job, type JobOutcome, type RunStore, type Tracer, type TurnDeps, type WebhookDispatcher,
} from '@treadle/engine';
import { openArchive } from '@treadle/event-archive';
import { createCanaryStore, createModelFleet, createWorkerRegistry } from '@treadle/fleet';
import { createAnswerJudge } from '@treadle/judgement';
import { createModelGateway, type ClosableModelGateway } from '@treadle/models';
import { consumeJobs, turnJobs } from '@treadle/queue';
import {
  connectRedis, createRedisClock, createRedisStanding, createRunStore, createScheduleStore, describeRedis, inspectRedis, readinessProblems, type RedisClient, type RedisClock,
} from '@treadle/run-store';
import { createMetrics, observeAborted, observeWrite, startAtZero, watchEventLoop, type Logger, type Metrics } from '@treadle/telemetry';
import { createToolRunner, type OpenToolRunner } from '@treadle/tools';
import { uuidv7 } from 'uuidv7';
import { createAudits, type Audits } from './audits.ts';
import { breakerGauge, onTransition } from './breakers.ts';
import { createElsewhere, type Elsewhere } from './elsewhere.ts';
import { addGauges, countDelivery } from './gauges.ts';
import { measuredModels, measuredStore, measuredTools, measuredTurn } from './measured.ts';
import { logDelivery, logEvent, logOtherStore } from './log-lines.ts';
import { createPresence, type Presence } from './presence.ts';
import { addSchedules } from './schedules.ts';
import { createTicks, type Ticks } from './ticks.ts';
import { toolSources } from './tool-sources.ts';
import { createTrials } from './trials.ts';
import { createWebhooks } from './webhooks.ts';

/** How often, ms. */
const every = { watch: 1000, models: 1000, pump: 250, archive: 1000, clock: 10_000, audit: 15_000, canary: 2000, webhooks: 500 } as const;
/** When the pump looks again at a run that has a job, ms. */
const graceMs = 10_000;

export interface WorkerSetup {
  readonly settings: Settings;
  readonly config: LoadedConfig;
  readonly logger: Logger;
  /** Of the environment; those of the configuration are known from it. */
  readonly secrets?: readonly string[];
  readonly redisUrl: string;
  /** Where the file archive lies, if no bucket is set. */
  readonly archiveDir: string;
  /** The worker's name in events. */
  readonly name: string;
  readonly poisonLimit: number;
  /** Without it nobody traces. */
  readonly tracer?: Tracer;
  /** Puts something between the worker and what it works with: tests break it there. */
  readonly decorate?: (ports: WorkerPorts) => WorkerPorts;
}

/** What a worker works with. */
export interface WorkerPorts { readonly store: RunStore; readonly archive: Archive; readonly models: ClosableModelGateway; readonly tools: OpenToolRunner }

export interface RunningWorker {
  readonly metrics: Metrics;
  /** `problems` is empty when it can work; `warnings` say what does not keep it from that. */
  health(): Promise<{ readonly problems: readonly string[]; readonly warnings: readonly string[] }>;
  /** Takes no new job, lets turns end within `timeoutMs`, then hands the rest back. */
  drain(timeoutMs: number): Promise<void>;
}

/** Throws when Redis does not answer at the start or is unfit (an eviction policy that would lose runs). */
export async function startWorker(setup: WorkerSetup): Promise<RunningWorker> {
  const { settings, logger } = setup;
  const onError = seldom((error: Error): void => { logger.warn({ err: error }, 'redis'); });
  const redis = connectRedis(setup.redisUrl, { role: 'command', onError });
  const redisDescription = await checkRedis(redis, logger);
  // Its own: what is asked of it is worth nothing when it comes late.
  const fleetRedis = connectRedis(setup.redisUrl, { role: 'fleet', onError });
  const clock = await createRedisClock(redis);
  const opened = openArchive({
    bucket: settings.s3Bucket, endpoint: settings.s3Endpoint, region: settings.s3Region, access_key_id: settings.s3AccessKeyId,
    secret_access_key: settings.s3SecretAccessKey, prefix: settings.s3Prefix ?? '', dir: setup.archiveDir,
  });
  const metrics = createMetrics('worker');
  startAtZero(metrics, Object.keys(setup.config.agents));
  const { store, archive, models, tools } = (setup.decorate ?? ((ports) => ports))({
    store: createRunStore({ redis, jobs: turnJobs({ prefix: settings.prefix }) }, { prefix: settings.prefix, shards: settings.shards, graceMs, keepUsageDays: settings.usageDays, ...archiveTiming(settings) }),
    archive: opened.archive,
    models: createModelGateway({
      connections: connectionsOf(setup.config), prices: modelPrices(setup.config), clock, fleet: createModelFleet({ redis: fleetRedis, prefix: settings.prefix }),
      breakers: { volume: settings.breakerVolume, openMs: settings.breakerOpenMs }, onTransition: onTransition(logger, metrics),
      allowances: { slots: settings.workerConcurrency, share: settings.modelSlowStart }, secrets: [...setup.secrets ?? [], ...setup.config.secrets],
    }),
    tools: createToolRunner(toolSources(setup.config, { secrets: setup.secrets ?? [], blobs: opened.archive })),
  });
  const { description } = opened;
  const held = new HeldRuns(store);
  const archiving: ArchiveDeps = { store, archive, options: archiveOptions(settings), observe: (outcome) => { metrics.archiveSegments.inc({ outcome }); }, ...tracing(setup) };
  const audits = createAudits({ archive, metrics, logger });
  const trials = createTrials({ canaries: createCanaryStore(redis, { prefix: settings.prefix }), config: setup.config, metrics, logger });
  const version = await packageVersion();
  const registry = createWorkerRegistry(redis, { prefix: settings.prefix });
  const elsewhere = createElsewhere(setup.config, { name: setup.name, waitMs: settings.releaseWaitMs, monotonicMs: () => performance.now() });
  const deps = turnDeps(setup, { elsewhere, store: measuredStore(metrics, store), clock, archive, tools, models, held, metrics, archiving, audits, arms: trials.arms });
  // What is benched or open, and who has what, is known before the first run asks.
  await Promise.all([models.exchange(), registry.list().then((workers) => { elsewhere.heard(workers); }, () => undefined)]);
  const consumer = consumeJobs({ connect: () => connectRedis(setup.redisUrl, { role: 'command', onError }), prefix: settings.prefix, shards: settings.shards }, {
    concurrency: settings.workerConcurrency, leaseMs: settings.leaseMs, onError: seldom((error) => { logger.warn({ err: error }, 'queue'); }),
    onTaken: (waitedMs) => { metrics.queueWait.observe(waitedMs / 1000); },
    handler: (job, signal) => handle({ deps, finishing: { store, canary: trials.finishing }, metrics, archiving }, job, signal),
  });
  const ticks = createTicks((name, error) => { logger.warn({ err: error, duty: name }, 'a duty failed; it is tried again'); });
  addDuties(ticks, { settings, store, held, clock, archiving, metrics, models });
  const presence = createPresence({ registry, consumer, metrics, onHeard: (workers) => { elsewhere.heard(workers); }, report: { name: setup.name, version, agent_versions: elsewhere.versions, concurrency: settings.workerConcurrency, started_at_ms: clock.nowMs() } });
  // Seen from the first moment; a Redis that is away now is told at the next.
  await presence.beat().catch(() => undefined);
  const backlog = addGauges(ticks, { settings, store, clock, metrics, redis, presence });
  addSchedules(ticks, {
    schedules: createScheduleStore({ redis, jobs: turnJobs({ prefix: settings.prefix }) }, { prefix: settings.prefix, shards: settings.shards }), archive, config: setup.config, metrics, logger, full: backlog.full, retention_ms: settings.retentionHours * 3_600_000,
    creating: { store, clock, random, shards: settings.shards, arms: trials.arms, ...tracing(setup) },
  });
  ticks.add('audit', every.audit, () => audits.round());
  ticks.add('canary', every.canary, () => trials.round());
  const webhooks = createWebhooks({ settings, config: setup.config, store, clock, metrics, logger, version });
  ticks.add('webhooks', every.webhooks, () => webhooks.round());
  archive.check().catch((error: unknown) => { logger.warn({ err: error, archive: description }, 'the archive cannot be used; runs go on, and are archived when it can'); });
  logger.info({ redis: redisDescription, archive: description, shards: settings.shards, concurrency: settings.workerConcurrency }, 'worker ready');

  const stopWatching = watchEventLoop(metrics);

  const pool: Pool = { stopWatching, redis, fleetRedis, consumer, ticks, held, tools, models, presence, webhooks };
  const probe = createArchiveProbe(archive, { monotonicMs: () => performance.now(), onFailure: (error) => { logger.warn({ err: error, archive: description }, 'the archive takes no writes'); } });
  const standing = createRedisStanding(redis, { monotonicMs: () => performance.now() });
  return {
    metrics, drain: (timeoutMs) => drain(pool, timeoutMs),
    health: async () => {
      const [inRedis, found, inArchive] = await Promise.all([readinessProblems(redis, settings), standing.look(), probe.problem()]);
      // One that never worked may be misconfigured. Later on runs go on without it, and are archived when it is back; but not in strict mode.
      const stops = settings.archiveMode === 'strict' || !probe.worked;
      const archiveSays = inArchive === null ? [] : [inArchive];
      return { problems: [...inRedis, ...found.problems, ...(stops ? archiveSays : []), ...consumer.problems()], warnings: [...found.warnings, ...(stops ? [] : archiveSays)] };
    },
  };
}

interface Parts extends WorkerPorts { readonly clock: RedisClock; readonly held: HeldRuns; readonly metrics: Metrics; readonly archiving: ArchiveDeps; readonly audits: Audits; readonly arms: Arms; readonly elsewhere: Elsewhere }

function connectionsOf(config: LoadedConfig) {
  return Object.fromEntries(Object.entries(modelConnections(config)).map(([name, connection]) => [name, { ...connection, total_timeout_ms: maxModelCallMs }]));
}

function turnDeps(setup: WorkerSetup, parts: Parts): TurnDeps {
  return {
    store: parts.store, clock: parts.clock, random, warm: new WarmRuns(), worker: setup.name, ...tracing(setup), tools: measuredTools(parts.tools), archive: parts.archive, held: parts.held,
    models: measuredModels(parts.metrics, parts.models), prices: modelPrices(setup.config),
    judge: createAnswerJudge({ hooks: hookFunctions(setup.config), validators: validatorFunctions(setup.config) }, {
      onSkipped: (skipped) => { setup.logger.warn(skipped, 'a stop hook was skipped'); },
    }),
    children: createChildRuns({ store: parts.store, archive: parts.archive, clock: parts.clock, random, arms: parts.arms, ...tracing(setup), shards: setup.settings.shards, agent: (name) => agentOf(setup.config, name) }),
    elsewhere: (state) => parts.elsewhere.of(state), onNotHere: (run_id, why) => { setup.logger.info({ run_id, why }, 'a run is left to another worker'); },
    ...showing(setup, parts), history: (run_id) => transcriptOf(parts, run_id),
    limits: { poison: setup.poisonLimit, nudges: 5 }, onOtherStore: (run_id, found) => { logOtherStore(setup.logger, run_id, found); },
    onAborted: (model, state) => { observeAborted(parts.metrics, { chain: state.spec?.chain.name ?? '', model }); },
    onDelivered: (how, run, epoch) => {
      countDelivery(parts.metrics, how, run.agent);
      logDelivery(setup.logger, how, { run, epoch });
    },
    onCommitted: (events, after, before) => {
      const resumed = events.some((event) => event.type === 'state_change' && event.old === 'paused');
      observeWrite(parts.metrics, { events, before, after });
      for (const event of events) {
        logEvent(setup.logger, event, { run: after, resumed });
        if (event.type === 'run_end') parts.audits.ended(event.run_id);
      }
    },
  };
}

function tracing({ tracer }: WorkerSetup): { readonly tracer?: Tracer } {
  return tracer === undefined ? {} : { tracer };
}

function agentOf(config: LoadedConfig, name: string) {
  const spec = agentSpecOf(config, name);
  return spec === undefined ? null : { spec, version: agentVersionOf(spec) };
}

/** Text as it comes; or, in strict mode, whole and after the archive has it. */
function showing({ settings, logger }: WorkerSetup, { store, archiving }: Parts): Pick<TurnDeps, 'increments' | 'archiveFirst'> {
  if (settings.archiveMode === 'async') return { increments: new IncrementWriter({ store, random }) };
  const warn = seldom((error) => { logger.warn({ err: error }, 'the archive does not take what has to be in it first; runs wait'); });
  return { increments: noIncrements, archiveFirst: archiveFirst(archiving, (error) => { warn(error instanceof Error ? error : new Error(String(error))); }) };
}

const random = { uuid: uuidv7, jitter: Math.random };

/** What a run has said: from the store while it is there, else folded from the archive. */
async function transcriptOf({ store, archive }: Pick<Parts, 'store' | 'archive'>, run_id: string): Promise<readonly Message[]> {
  const snapshot = await store.read(run_id);
  const state = snapshot === null ? await foldLog({ store, archive }, run_id) : restoreState(initialState, snapshot.stored);
  return state.transcript.messages.map(({ seq: _, ...message }) => message);
}

/** What must be in the archive before it is shown is archived at the next look. */
function archiveTiming({ archiveMode }: Settings): { readonly archiveAfterMs?: number } {
  return archiveMode === 'strict' ? { archiveAfterMs: 0 } : {};
}

/** A call is bounded by its turn; this is the watchdog's last resort. */
const maxModelCallMs = 3_600_000;

function archiveOptions(settings: Settings) {
  return { segment_events: 500, keep_events: 200, retention_ms: settings.retentionHours * 3_600_000 };
}

interface Handling { readonly deps: TurnDeps; readonly finishing: FinishDeps; readonly metrics: Metrics; readonly archiving: ArchiveDeps }

async function handle({ deps, finishing, metrics, archiving }: Handling, job: Job, signal: AbortSignal): Promise<JobOutcome> {
  if (job.type === 'finish') {
    await finishRun(finishing, job.run_id);
    return 'done';
  }
  const outcome = await measuredTurn(metrics, () => executeTurn(deps, job, signal));
  // What the turn has said is shown when the archive has it; the next look of the archiver would be up to a second away.
  if (deps.archiveFirst !== undefined) archiveRun(archiving, job.run_id).catch(() => undefined);
  return outcome === 'done' ? 'done' : 'hand_back';
}

interface Duties {
  readonly settings: Settings; readonly store: RunStore; readonly held: HeldRuns; readonly clock: RedisClock; readonly metrics: Metrics;
  readonly archiving: ArchiveDeps; readonly models: ClosableModelGateway;
}

function addDuties(ticks: Ticks, { settings, store, held, clock, archiving, metrics, models }: Duties): void {
  const shards = Array.from({ length: settings.shards }, (_, shard) => shard);
  ticks.add('watch', every.watch, () => held.watch());
  const showBreakers = breakerGauge(metrics);
  ticks.add('models', every.models, async () => {
    await models.exchange();
    showBreakers(models.openBreakers(), clock.nowMs());
    for (const { model, in_flight, allowance } of models.allowed()) {
      metrics.modelInFlight.set({ model }, in_flight);
      metrics.modelAllowance.set({ model }, allowance);
    }
  });
  ticks.add('clock', every.clock, () => clock.refresh());
  for (const shard of shards) {
    ticks.add(`pump ${shard}`, every.pump, async () => {
      await store.pump(shard, { limit: 200, grace_ms: graceMs });
    });
    ticks.add(`archive ${shard}`, every.archive, async () => {
      await archiveDue(archiving, shard, { limit: 100, concurrency: 8, retry_ms: 5000 });
    });
  }
}

async function packageVersion(): Promise<string> {
  return (JSON.parse(await readFile(new URL('../package.json', import.meta.url), 'utf8')) as { version: string }).version;
}

/** Says what was found. Throws `UnfitRedis`. */
async function checkRedis(redis: RedisClient, logger: Logger): Promise<string> {
  const inspection = await inspectRedis(redis);
  const { problems } = inspection;
  for (const each of problems.filter((problem) => problem.severity === 'warning')) logger.warn({ mend: each.mend }, each.problem);
  const unfit = problems.find((problem) => problem.severity === 'error');
  if (unfit !== undefined) throw new UnfitRedis(`${unfit.problem} (${unfit.mend})`);
  return describeRedis(inspection);
}

/** Connections that are away fail many times a second; a line now and then says the same. */
function seldom(report: (error: Error) => void, everyMs = 10_000): (error: Error) => void {
  let lastMs = -Infinity;
  return (error) => {
    if (performance.now() - lastMs < everyMs) return;
    lastMs = performance.now();
    report(error);
  };
}

/** Redis answers, but would lose accepted runs. */
export class UnfitRedis extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'UnfitRedis';
  }
}

interface Pool {
  readonly redis: RedisClient; readonly fleetRedis: RedisClient; readonly consumer: ReturnType<typeof consumeJobs>; readonly ticks: Ticks; readonly held: HeldRuns; readonly tools: OpenToolRunner;
  readonly models: ClosableModelGateway; readonly stopWatching: () => void; readonly presence: Presence; readonly webhooks: WebhookDispatcher;
}

async function drain(pool: Pool, limitMs: number): Promise<void> {
  // With Redis away nothing can be committed or handed back: waiting for it would only delay the next start.
  const timeoutMs = pool.redis.status === 'ready' ? limitMs : Math.min(limitMs, 1000);
  pool.presence.drains();
  const closed = Promise.all([pool.consumer.close(), pool.webhooks.close(timeoutMs)]);
  const timer = setTimeout(() => { pool.held.drain(); }, timeoutMs);
  // A tool that ignores its signal is left behind: its call is in doubt, and the next worker says so.
  const bound = new Promise<void>((resolve) => { setTimeout(resolve, timeoutMs + 5000).unref(); });
  await Promise.race([closed, bound]);
  clearTimeout(timer);
  await Promise.race([pool.ticks.stop(), bound]);
  // Best effort: a worker that says nothing more is forgotten in a while.
  if (pool.redis.status === 'ready') await pool.presence.leave().catch(() => undefined);
  await pool.tools.close();
  pool.models.close();
  pool.stopWatching();
  pool.redis.disconnect();
  pool.fleetRedis.disconnect();
}
