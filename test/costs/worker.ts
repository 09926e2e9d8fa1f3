/**
 * A worker in this very process on real Redis and BullMQ, with a model that answers at once and tools that do nothing: what is
 * left is what the product itself costs.
 */
import { defaultLimits, noJudgement, noUsage, type ModelReply } from '@treadle/core';
import { createRun, executeTurn, HeldRuns, IncrementWriter, mintRunId, WarmRuns, type JobConsumer, type ModelCall, type RunStore, type TurnDeps } from '@treadle/engine';
import { consumeJobs, turnJobs } from '@treadle/queue';
import { connectRedis, createRunStore, type RedisClient } from '@treadle/run-store';
import { alwaysThere, agentLimits, startRedis, testModel, testSpec, testTool, type RedisServer } from '@treadle/testkit';

export interface CostWorker {
  readonly redis: RedisClient;
  readonly store: RunStore;
  /** Begins to take jobs. */
  start(concurrency: number): void;
  enqueue(): Promise<string>;
  stop(): Promise<void>;
}

export interface CostOptions {
  /** Tool turns before the answer. */
  readonly turns: number;
  /** Calls of each turn: `look` reads, `write` may happen once. */
  readonly calls: readonly ('look' | 'write')[];
  readonly onModelCall?: (call: ModelCall) => Promise<void>;
}

const observation = 'x'.repeat(2048);
const prefix = 'cost';

export async function startCostWorker(options: CostOptions): Promise<CostWorker> {
  const server: RedisServer = await startRedis();
  const redis = connectRedis(server.url, { role: 'command' });
  const store = createRunStore({ redis, jobs: turnJobs({ prefix }) }, { prefix, shards: 1 });
  const clock = { nowMs: () => Date.now(), monotonicMs: () => performance.now() };
  const random = { uuid: () => crypto.randomUUID(), jitter: () => 0.5 };
  const deps: TurnDeps = {
    store, clock, random, warm: new WarmRuns(), worker: 'w', limits: { poison: 3, nudges: 5 }, held: new HeldRuns(store),
    increments: new IncrementWriter({ store, random }), archive: { putBlob: () => Promise.resolve(''), getBlob: () => Promise.resolve(null), events: () => Promise.resolve([]) },
    judge: { judge: () => noJudgement }, history: () => Promise.resolve([]),
    models: { ...alwaysThere, call: async (call) => {
      await options.onModelCall?.(call);
      return { type: 'replied', reply: replyTo(call, options) };
    } },
    tools: {
      catalogue: () => Promise.resolve({ tools: [testTool('look'), testTool('write', { effect: 'once', parallel: 'serial' })], problems: [] }),
      check: () => null, asks: () => false,
      run: () => Promise.resolve({ content: observation, is_error: false, settled: true }),
    },
  };
  let consumer: JobConsumer | null = null;
  return {
    redis, store,
    start: (concurrency) => {
      consumer = consumeJobs({ connect: () => connectRedis(server.url, { role: 'command' }), prefix, shards: 1 }, {
        concurrency, leaseMs: 60_000,
        handler: async (job, signal) => job.type === 'finish' ? 'done' : await executeTurn(deps, job, signal) === 'done' ? 'done' : 'hand_back',
      });
    },
    enqueue: async () => {
      const run_id = mintRunId({ random, shards: 1 });
      const limits = { ...defaultLimits, max_turns: 1000, tool_budget: 2000, turn_timeout_s: 60, max_observation_bytes: 4096 };
      const run = { tenant: 't', spec: testSpec({ chain: { name: 'default', models: [{ ...testModel('small'), context_window: 10_000_000 }] }, limits: agentLimits() }), agent_version: 'v', limits, input: 'go', metadata: {}, tags: [], priority: 50, run_at: null };
      await createRun({ store, clock, random, shards: 1 }, run, { run_id, not_after_ms: Date.now() + 60_000 });
      return run_id;
    },
    stop: async () => {
      await consumer?.close();
      redis.disconnect();
      await server.stop();
    },
  };
}

/** The number of the turn that asks, told from the transcript. */
export function turnOf(call: ModelCall, calls: number): number {
  return call.request.messages.filter((message) => message.role === 'tool').length / calls + 1;
}

function replyTo(call: ModelCall, { turns, calls }: CostOptions): ModelReply {
  const base = { text: '', thinking: '', provider_data: null, finish: 'stop', finish_raw: 'stop', usage: noUsage } as const;
  const turn = turnOf(call, calls.length);
  if (turn > turns) return { ...base, text: 'done', calls: [] };
  return { ...base, calls: calls.map((name) => ({ provider_id: null, name, input: { q: 1000 + turn }, problem: null })) };
}
