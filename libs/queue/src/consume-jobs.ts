/**
 * Takes jobs from the shards' queues and hands them to one handler.
 *
 * Owns one BullMQ worker per shard and one command connection for all. States: open → closing → closed.
 * 1. A job is completed only by a handler that answered `done`. Handed back, or failed by an exception, it waits again:
 *    no job is ever deleted because something went wrong, since the next delivery finds out what happened.
 * 2. A handler that threw is waited for a moment before its job comes again, so that a broken service makes no hot loop.
 * 3. A job whose lock could not be given back stays with the queue, which delivers it again when the lease has run out.
 * 4. A worker that is connected and hears nothing is replaced by a new one; what it has in hand ends in its hands.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Job, JobConsumer, JobHandler } from '@treadle/engine';
import { Queue, WaitingError, Worker, type Job as BullJob } from 'bullmq';
import { createDeliveries, type Deliveries } from './deliveries.ts';
import { createHearing } from './hearing.ts';
import { queueDepths, type RedisClient } from './queue-depths.ts';
import { queueKey, queueName, shardPrefix } from './queue-names.ts';

export interface ConsumerDeps {
  /**
   * Makes a connection that waits for Redis (`maxRetriesPerRequest: null`). Called once; every shard's worker duplicates it for
   * its blocking read. Closed by the consumer.
   */
  readonly connect: () => RedisClient;
  readonly prefix: string;
  readonly shards: number;
}

export interface ConsumerOptions {
  /** Jobs in hand at once, over all shards: split evenly, at least one per shard. */
  readonly concurrency: number;
  /** How long the queue believes in a silent worker. Stalled jobs are looked for at a third of it. */
  readonly leaseMs: number;
  readonly handler: JobHandler;
  /** Pause before the job of a handler that threw comes again. Default 500, at most a quarter of the lease. */
  readonly retryPauseMs?: number;
  /** Told of a job's first delivery: how long it could have run, ms, by the store's clock when it was added and this machine's now. */
  readonly onTaken?: (waitedMs: number) => void;
  /** How often it is looked whether jobs wait that nobody takes, ms. Default 3000. */
  readonly hearingMs?: number;
  /** Told of everything that goes wrong beside handlers' outcomes. */
  readonly onError?: (error: Error) => void;
}

interface Hands {
  readonly deliveries: Deliveries; readonly closing: AbortSignal; readonly redis: RedisClient; readonly report: (error: unknown) => void;
  /** Jobs of this shard: taken so far, and in hand now. */
  readonly count: { taken: number; inHand: number };
}

/** Looks in a row at which jobs wait, there is room and none is taken, before the worker counts as deaf. */
const deafLooks = 3;

/** Begins at once; jobs are taken as soon as Redis answers. */
export function consumeJobs(deps: ConsumerDeps, options: ConsumerOptions): JobConsumer {
  const report = (error: unknown): void => { options.onError?.(error instanceof Error ? error : new Error(String(error))); };
  const redis = deps.connect();
  redis.on('error', report);
  const closing = new AbortController();
  const old: Promise<void>[] = [];
  const shards = Array.from({ length: deps.shards }, (_, shard) => {
    const hands: Hands = { deliveries: createDeliveries(options.leaseMs), closing: closing.signal, redis, report, count: { taken: 0, inHand: 0 } };
    keepNoEvents(deps, shard, hands);
    return { shard, hands, hearing: createHearing(deafLooks), worker: begin({ deps, options, shard, hands }) };
  });

  async function listen(): Promise<void> {
    const depths = await queueDepths(redis, deps);
    // Nobody would close a worker that begins now.
    if (closing.signal.aborted) return;
    for (const each of shards) {
      const { taken, inHand } = each.hands.count;
      if (!each.hearing.look({ waiting: depths[each.shard]?.waiting ?? 0, taken, inHand, room: share(options.concurrency, deps.shards, each.shard) })) continue;
      report(new Error(`shard ${each.shard}: jobs wait and none is taken; its worker is replaced`));
      old.push(each.worker.close().catch(report));
      each.worker = begin({ deps, options, shard: each.shard, hands: each.hands });
    }
  }

  const listening = setInterval(() => { listen().catch(() => undefined); }, options.hearingMs ?? 3000);
  let closed: Promise<void> | null = null;
  return {
    problems: () => shards.filter(({ hearing }) => hearing.deaf).map(({ shard }) => `shard ${shard}: jobs wait and none is taken`),
    load: () => shards.map(({ hands }) => ({ taken: hands.count.taken, in_hand: hands.count.inHand })),
    close: () => closed ??= (async () => {
      clearInterval(listening);
      closing.abort();
      await Promise.all([...shards.map(({ worker }) => worker.close()), ...old]);
      redis.disconnect();
    })(),
  };
}

function begin({ deps, options, shard, hands }: { readonly deps: ConsumerDeps; readonly options: ConsumerOptions; readonly shard: number; readonly hands: Hands }): Worker<unknown, void> {
  const marker = queueKey(deps.prefix, shard, 'marker');
  const worker = new Worker<unknown, void>(queueName, (job, token) => process(job, { token: token ?? '', marker, hands, options }), {
    connection: hands.redis,
    prefix: shardPrefix(deps.prefix, shard),
    concurrency: share(options.concurrency, deps.shards, shard),
    lockDuration: options.leaseMs,
    stalledInterval: Math.ceil(options.leaseMs / 3),
    // Our log counts deliveries; BullMQ would delete the job of a run that is alive.
    maxStalledCount: 1e9,
    // Seconds. Only a lost marker is found this way; a new job wakes the worker at once.
    drainDelay: 2,
    removeOnComplete: { count: 0 },
    removeOnFail: { count: 0 },
  });
  worker.on('error', hands.report);
  worker.on('lockRenewalFailed', (ids) => { hands.deliveries.lost(ids, 'the queue has given the job to somebody else'); });
  worker.on('locksRenewed', ({ jobIds }) => { hands.deliveries.renewed(jobIds); });
  return worker;
}

async function process(
  job: BullJob<unknown, void>,
  { token, marker, hands, options }: { token: string; marker: string; hands: Hands; options: ConsumerOptions },
): Promise<void> {
  const delivery = hands.deliveries.begin(job.id ?? '');
  hands.count.taken += 1;
  hands.count.inHand += 1;
  if (job.attemptsStarted <= 1) options.onTaken?.(Math.max(0, Date.now() - job.timestamp));
  try {
    if (await outcomeOf(jobOf(job), delivery.signal, { hands, options }) === 'done') return;
    // The lease timer ends first: while the job is given back no renewal is heard.
    delivery.end();
    await job.moveToWait(token);
    // BullMQ wakes nobody here: it counts on this worker to fetch again, which one that closes does not.
    await hands.redis.zadd(marker, 0, '0');
  } catch (error) {
    hands.report(error);
  } finally {
    hands.count.inHand -= 1;
    delivery.end();
  }
  throw new WaitingError();
}

async function outcomeOf(job: Job, signal: AbortSignal, { hands, options }: { hands: Hands; options: ConsumerOptions }): Promise<'done' | 'hand_back'> {
  try {
    return await options.handler(job, signal);
  } catch (error) {
    hands.report(error);
    const pauseMs = Math.min(options.retryPauseMs ?? 500, options.leaseMs / 4);
    await sleep(pauseMs, undefined, { signal: hands.closing }).catch(() => undefined);
    return 'hand_back';
  }
}

/** Throws `TypeError` for a job that is not ours: it stays in the queue, where an operator can see it. */
function jobOf(job: BullJob<unknown, void>): Job {
  const { run_id, n } = (job.data ?? {}) as { run_id?: unknown; n?: unknown };
  if (job.name === 'turn' && typeof run_id === 'string' && typeof n === 'number') return { type: 'turn', run_id, n };
  if (job.name === 'finish' && typeof run_id === 'string') return { type: 'finish', run_id };
  throw new TypeError(`the job ${job.id ?? '?'} named "${job.name}" is none of ours`);
}

/** BullMQ writes several events per job into a stream that nobody reads; this setting lies with the queue and stays. */
function keepNoEvents(deps: ConsumerDeps, shard: number, { redis, report }: Pick<Hands, 'redis' | 'report'>): void {
  const queue = new Queue(queueName, { connection: redis, prefix: shardPrefix(deps.prefix, shard), streams: { events: { maxLen: 0 } } });
  queue.on('error', report);
  queue.waitUntilReady().then(() => queue.close()).catch(report);
}

function share(total: number, parts: number, part: number): number {
  return Math.max(1, Math.floor(total / parts) + (part < total % parts ? 1 : 0));
}
