/**
 * Three incidents in which runs are slow: what is done to a system under a steady load, and on which panels of the dashboards an operator
 * sees it. `docs/runbook.md` says how to tell them apart; a test plays each and looks at the panels with a real Prometheus.
 */
import { refusal, reply, startRedis, startTcpProxy, text, type ChatBody, type ScriptedReply, type TcpProxy } from '@treadle/testkit';
import { startStage, type Role, type Stage, type StageRedis } from '../e2e/processes.ts';

/** A panel by dashboard file and title, and what its numbers must do against the calm before. */
export interface Sign {
  readonly dashboard: 'fleet' | 'models' | 'tools' | 'durability';
  readonly title: string;
  /** Labels that the series has which shows it. */
  readonly labels?: Readonly<Record<string, string>>;
  /** Which of the panel's queries; default the first (of three quantiles the median). */
  readonly query?: number;
  /** By how much the largest number must rise: at least so many times, or from nothing at all. */
  readonly rises: number;
  /** And where it must be then, in the panel's unit: a busy machine makes everything some milliseconds slower. */
  readonly least?: number;
}

export interface Incident {
  readonly title: string;
  readonly begin: (system: LoadedSystem) => void;
  /** What leads to the cause; the first is seen in no other incident. */
  readonly signs: readonly [Sign, ...Sign[]];
}

export const incidents: Readonly<Record<string, Incident>> = {
  'throttled-model': {
    title: 'A provider lets only some of the requests through',
    begin: (system) => { system.throttled = true; },
    signs: [
      { dashboard: 'models', title: 'Errors by type', labels: { model: 'small', error_type: 'rate_limited' }, rises: Infinity },
      { dashboard: 'models', title: 'Failed', rises: Infinity },
      { dashboard: 'fleet', title: 'Runs by status', labels: { status: 'running' }, rises: 2 },
    ],
  },
  'slow-redis': {
    title: 'Redis answers late',
    begin: (system) => { system.redisProxy.delay(800); },
    signs: [
      { dashboard: 'durability', title: 'Round trip', rises: 3, least: 0.5 },
      { dashboard: 'durability', title: 'Append', rises: 3, least: 0.5 },
      { dashboard: 'fleet', title: 'Overhead of turns', rises: 3 },
    ],
  },
  'hanging-tool': {
    title: 'A tool does not answer',
    begin: (system) => { system.hanging = true; },
    signs: [
      { dashboard: 'tools', title: 'Duration by tool', labels: { tool: 'test/slow_lookup' }, rises: 5, least: 2 },
      { dashboard: 'tools', title: 'Errors by tool', labels: { tool: 'test/slow_lookup' }, rises: Infinity },
      { dashboard: 'fleet', title: 'Duration of turns', query: 1, rises: 3 },
    ],
  },
};

export interface LoadedSystem {
  readonly stage: Stage<StageRedis>;
  readonly workers: readonly Role[];
  readonly redisProxy: TcpProxy;
  /** Of Redis itself, as it is reached on its own machine: not by the proxy, which is the network to it. */
  readonly redisPort: number;
  throttled: boolean;
  hanging: boolean;
  stop(): Promise<void>;
}

/** How long the tool takes when all is well, and how long it is waited for, ms. */
const [usualMs, timeoutMs] = [20, 4000];

/** Two workers, and from now on `perSecond` new runs a second, each with a call of a tool and an answer. */
export async function startLoadedSystem({ perSecond }: { readonly perSecond: number }): Promise<LoadedSystem> {
  const state = { throttled: false, hanging: false };
  let asked = 0;
  const script = (body: ChatBody): ScriptedReply => {
    // Three of four are told to come again.
    if (state.throttled && asked++ % 4 !== 0) return refusal(429, 'rate limit exceeded', { 'retry-after': '2' });
    const delivery = { delayMs: 40, chunkDelayMs: 5 };
    if ((body.messages ?? []).some(({ role }) => role === 'tool')) return text('Found.', delivery);
    return reply({ calls: [{ id: null, name: 'test__slow_lookup', args: { ms: state.hanging ? 600_000 : usualMs } }], usage: { prompt: 100, output: 10 } }, delivery);
  };
  let redisProxy: TcpProxy | null = null;
  let redisPort = 0;
  const stage = await startStage({
    model: { script, strict: false }, tools: { 'test/slow_lookup': { timeout_ms: timeoutMs } }, env: { WORKER_CONCURRENCY: '20', TREADLE_LEASE_MS: '8000', TREADLE_BREAKER_VOLUME: '1000000' },
    redis: async () => {
      const redis = await startRedis();
      redisPort = redis.port;
      const proxy = redisProxy = await startTcpProxy({ port: redis.port });
      return { url: `redis://127.0.0.1:${proxy.port}`, stop: async () => { await Promise.all([proxy.close(), redis.stop()]); } };
    },
  });
  const workers = await Promise.all([stage.startWorker(), stage.startWorker()]);
  // What cannot be posted now is not posted: an operator's clients would see the same.
  const posting = setInterval(() => { void stage.client.createRun({ agent: 'tester', input: 'Look it up.' }).catch(() => undefined); }, 1000 / perSecond);
  return Object.assign(state, {
    stage, workers, redisProxy: redisProxy!, redisPort,
    stop: async () => {
      clearInterval(posting);
      redisProxy?.delay(0);
      await stage.stop();
    },
  });
}
