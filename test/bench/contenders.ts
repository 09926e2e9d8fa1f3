/**
 * What is compared, on the same Redis, with the same model client and the same model:
 * `bare`: a BullMQ job per turn and a model call, no state, no events, nothing to recover: the limit of any design on BullMQ.
 * `treadle`: durable turns as the worker runs them, with a 2 KB observation per tool turn.
 */
import { randomBytes } from 'node:crypto';
import { defaultLimits, noJudgement, type ModelSpec } from '@treadle/core';
import { createRun, executeTurn, HeldRuns, IncrementWriter, mintRunId, WarmRuns, type TurnDeps } from '@treadle/engine';
import { createModelGateway } from '@treadle/models';
import { consumeJobs, turnJobs } from '@treadle/queue';
import { connectRedis, createRunStore } from '@treadle/run-store';
import { agentLimits, testSpec, testTool } from '@treadle/testkit';
import { Queue, Worker } from 'bullmq';

export interface Contender {
  readonly name: string;
  enqueue(): Promise<void>;
  /** Takes jobs until so many runs have ended. */
  work(runs: number, concurrency: number): Promise<void>;
  stop(): Promise<void>;
}

export interface Place { readonly redisUrl: string; readonly modelUrl: string; readonly turns: number }

const model: ModelSpec = { name: 'fake', provider: 'ollama', model: 'fake', context_window: 1_000_000, max_output_tokens: 1024, supports_tools: true, supports_images: false };
/** Incompressible, as an observation is. */
const observation = randomBytes(1536).toString('base64');
const look = testTool('look', { input_schema: { type: 'object', properties: { turn: { type: 'number' } } } });

function gatewayTo(modelUrl: string) {
  return createModelGateway({ connections: { fake: { base_url: modelUrl, first_token_timeout_ms: 60_000, idle_timeout_ms: 60_000, total_timeout_ms: 60_000 } } });
}

export function bare({ redisUrl, modelUrl, turns }: Place): Contender {
  const connection = connectRedis(redisUrl, { role: 'command' });
  const queue = new Queue('bare', { connection, streams: { events: { maxLen: 0 } } });
  const gateway = gatewayTo(modelUrl);
  const options = { removeOnComplete: true, removeOnFail: true };
  let worker: Worker | null = null;
  return {
    name: 'bare',
    enqueue: async () => { await queue.add('turn', { n: 0 }, options); },
    work: (runs, concurrency) => new Promise((resolve) => {
      let ended = 0;
      worker = new Worker<{ n: number }>('bare', async (job) => {
        const messages = [{ role: 'user' as const, content: 'go' }, ...Array.from({ length: job.data.n }, (_, index) => [
          { role: 'assistant' as const, text: '', thinking: '', calls: [{ tool_use_id: `c${index}`, tool_name: 'look', tool_input: {} }], model: 'fake' },
          { role: 'tool' as const, tool_use_id: `c${index}`, tool_name: 'look', content: observation, is_error: false }]).flat()];
        const outcome = await gateway.call({ request: { model, system: 'Be brief.', messages, tools: [look] }, signal: new AbortController().signal, onText: () => undefined });
        if (outcome.type !== 'replied') throw new Error(outcome.failure.detail);
        if (job.data.n < turns) await queue.add('turn', { n: job.data.n + 1 }, options);
        else if (++ended === runs) resolve();
      }, { connection, concurrency });
    }),
    stop: async () => {
      await worker?.close();
      await queue.close();
      gateway.close();
      connection.disconnect();
    },
  };
}

export function treadle({ redisUrl, modelUrl }: Place): Contender {
  const prefix = 'bench';
  const redis = connectRedis(redisUrl, { role: 'command' });
  const store = createRunStore({ redis, jobs: turnJobs({ prefix }) }, { prefix, shards: 1 });
  const gateway = gatewayTo(modelUrl);
  const clock = { nowMs: () => Date.now(), monotonicMs: () => performance.now() };
  const random = { uuid: () => crypto.randomUUID(), jitter: () => 0.5 };
  const limits = { ...defaultLimits, max_turns: 1000, tool_budget: 2000 };
  const spec = testSpec({ instructions: 'Be brief.', chain: { name: 'default', models: [model] }, limits: agentLimits() });
  const deps: TurnDeps = {
    store, clock, random, warm: new WarmRuns(), worker: 'bench', limits: { poison: 3, nudges: 5 }, held: new HeldRuns(store), models: gateway,
    increments: new IncrementWriter({ store, random }), archive: { putBlob: () => Promise.resolve(''), getBlob: () => Promise.resolve(null), events: () => Promise.resolve([]) }, judge: { judge: () => noJudgement }, history: () => Promise.resolve([]),
    tools: {
      catalogue: () => Promise.resolve({ tools: [look], problems: [] }), check: () => null, asks: () => false,
      run: () => Promise.resolve({ content: observation, is_error: false, settled: true }),
    },
  };
  let consumer: ReturnType<typeof consumeJobs> | null = null;
  return {
    name: 'treadle',
    enqueue: async () => {
      const run = { tenant: 't', spec, agent_version: 'v', limits, input: 'go', metadata: {}, tags: [], priority: 50, run_at: null };
      await createRun({ store, clock, random, shards: 1 }, run, { run_id: mintRunId({ random, shards: 1 }), not_after_ms: Date.now() + 600_000 });
    },
    work: (runs, concurrency) => new Promise((resolve) => {
      let ended = 0;
      consumer = consumeJobs({ connect: () => connectRedis(redisUrl, { role: 'command' }), prefix, shards: 1 }, {
        concurrency, leaseMs: 30_000,
        handler: async (job, signal) => {
          if (job.type === 'turn') return await executeTurn(deps, job, signal) === 'done' ? 'done' : 'hand_back';
          await store.finished(job.run_id);
          if (++ended === runs) resolve();
          return 'done';
        },
      });
    }),
    stop: async () => {
      await consumer?.close();
      gateway.close();
      redis.disconnect();
    },
  };
}
