/**
 * The stage of the chaos tests: API and worker processes that are put back when they die, a real Redis and an S3 server, each
 * behind a proxy that can break, a strict model server, tools with a ledger outside of the product.
 *
 * Owns: everything it starts, and one folder. States: up → stopped (`stop`).
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { createClient, type Client, type Run } from '@treadle/client';
import {
  freePort, openArmed, readLedger, reply, startModelServer, startRedis, startS3Server, startTcpProxy,
  type Armed, type ChatBody, type LedgerLine, type ModelScript, type ModelServer, type RedisServer, type RedisServerOptions, type S3Server, type TcpProxy,
} from '@treadle/testkit';
import { EndedEarly, startProcess, until, type Role } from '../e2e/processes.ts';
import type { History, RunHistory } from './checker.ts';
import { randomFrom, scaled, type Random } from './random.ts';
import { startReader, type BreakingReader } from './reader.ts';

export const usagePerReply = { input: 100, output: 10 } as const;
/** Tool turns of the usual run; its answer is one more. */
export const toolTurns = 4;

export interface ChaosOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly redis?: RedisServerOptions;
  readonly script?: ModelScript;
  /** More of the configuration; told the model server's address. */
  readonly config?: Readonly<Record<string, unknown>> | ((modelUrl: string) => Readonly<Record<string, unknown>>);
  /** A configuration file to be used instead; it finds the model at `MODEL_URL`. */
  readonly configFile?: string;
  readonly limits?: Readonly<Record<string, unknown>>;
  /** Tokens; default 32,768. */
  readonly contextWindow?: number;
}

export interface ChaosStage {
  readonly dir: string;
  readonly redis: RedisServer;
  /** Between every process and Redis. */
  readonly redisProxy: TcpProxy;
  readonly s3: S3Server;
  readonly s3Proxy: TcpProxy;
  readonly model: ModelServer;
  readonly armed: Armed;
  readonly url: string;
  readonly client: Client;
  readonly workers: Fleet;
  readonly api: Fleet;
  ledger(): LedgerLine[];
  /** One more process, which is not put back; an API has a port of its own. */
  more(role: 'api' | 'worker', env?: Readonly<Record<string, string>>): Promise<Role>;
  stop(): Promise<void>;
}

/** Processes of one kind, each put back as soon as it ends, until `stop`. */
export interface Fleet {
  readonly roles: readonly Role[];
  /** Ends so far, by signal or of themselves. */
  ends(): number;
  /** What processes said that ended without having been told to. */
  readonly complaints: readonly string[];
  start(count: number): Promise<void>;
  /** SIGTERM, and nothing is put back. */
  stop(): Promise<void>;
}

function createFleet(begin: () => Promise<Role>): Fleet {
  const roles: Role[] = [];
  const complaints: string[] = [];
  let ends = 0;
  let stopping = false;
  const starting = new Set<Promise<void>>();

  function keep(): Promise<void> {
    const started = putBack().finally(() => { starting.delete(started); });
    starting.add(started);
    return started;
  }

  async function putBack(): Promise<void> {
    const role = await begin().catch((error: unknown) => {
      // It has taken a job, and met the point that kills it, before it had said that it is ready.
      if (!(error instanceof EndedEarly) || error.code !== null) throw error;
      ends += 1;
      return null;
    });
    if (role === null) return stopping ? undefined : keep();
    roles.push(role);
    if (stopping) role.kill('SIGTERM');
    void role.exited.then((code) => {
      roles.splice(roles.indexOf(role), 1);
      ends += 1;
      // By SIGKILL the code is null: that is what tests do. Everything else nobody asked for.
      if (code !== null && !stopping) complaints.push(`ended with ${code}: ${role.output().slice(-2000)}`);
      if (/unhandled|uncaught|MaxListenersExceeded|InvariantBroken/i.test(role.output())) complaints.push(role.output().slice(-2000));
      if (!stopping) keep().catch((error: unknown) => { if (!stopping) complaints.push(String(error)); });
    });
  }
  return {
    roles, complaints, ends: () => ends,
    start: async (count) => { await Promise.all(Array.from({ length: count }, keep)); },
    stop: async () => {
      stopping = true;
      // One that is just being put back can be told only when it is ready; left alone it would make its folders again behind our back.
      await Promise.race([Promise.allSettled(starting), sleep(10_000, undefined, { ref: false })]);
      const all = [...roles];
      for (const role of all) role.kill('SIGTERM');
      const bound = setTimeout(() => { for (const role of all) role.kill('SIGKILL'); }, 10_000);
      await Promise.all(all.map((role) => role.exited));
      clearTimeout(bound);
    },
  };
}

/** With one API process; workers are the test's to start. */
export async function startChaos(options: ChaosOptions = {}): Promise<ChaosStage> {
  const dir = mkdtempSync(join(tmpdir(), 'treadle-chaos-'));
  const armed = openArmed(dir);
  const [redis, s3, model] = await Promise.all([startRedis(options.redis), startS3Server(), startModelServer({ dialect: 'ollama', script: options.script ?? usualScript })]);
  const redisProxy = await startTcpProxy({ port: redis.port });
  const s3Proxy = await startTcpProxy({ port: Number(new URL(s3.endpoint).port) });
  const configFile = options.configFile ?? join(dir, 'treadle.config.json');
  if (options.configFile === undefined) writeFileSync(configFile, JSON.stringify(configOf(options, model.url, dir)));
  // The API is put back on the same one.
  const port = await freePort();
  const env = {
    REDIS_URL: `redis://127.0.0.1:${redisProxy.port}`, S3_BUCKET: s3.bucket, S3_ENDPOINT: `http://127.0.0.1:${s3Proxy.port}`, S3_REGION: 'x', S3_ACCESS_KEY_ID: 'a', S3_SECRET_ACCESS_KEY: 'b',
    TREADLE_CONFIG: configFile, METRICS_PORT: '0', LOG_LEVEL: 'warn', TREADLE_LEASE_MS: '2000', WORKER_CONCURRENCY: '8', CHAOS_DIR: dir, MODEL_URL: model.url,
    // Killing at random hits a run several times in a row; that poison is isolated is tested for itself.
    TREADLE_POISON_LIMIT: '100', ...options.env,
  };
  const script = join(import.meta.dirname, 'role.ts');
  const api = createFleet(() => startProcess('api', { ...env, PORT: String(port) }, script));
  const workers = createFleet(() => startProcess('worker', env, script));
  const more: Role[] = [];
  await api.start(1);
  const url = `http://127.0.0.1:${port}`;
  return {
    dir, redis, redisProxy, s3, s3Proxy, model, armed, url, api, workers, client: createClient({ url, reconnectMs: 50 }), ledger: () => readLedger(join(dir, 'ledger.jsonl')),
    more: async (kind, over = {}) => {
      const role = await startProcess(kind, { ...env, PORT: '0', ...over }, script);
      more.push(role);
      return role;
    },
    stop: async () => {
      for (const role of more) role.kill('SIGTERM');
      await Promise.all([api.stop(), workers.stop(), ...more.map((role) => role.exited)]);
      await Promise.all([model.close(), redisProxy.close(), s3Proxy.close()]);
      await Promise.all([redis.stop(), s3.stop()]);
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

function configOf(options: ChaosOptions, modelUrl: string, dir: string): Record<string, unknown> {
  const tools = { command: process.execPath, args: [join(import.meta.dirname, 'chaos-tools.ts')], env: { LEDGER_FILE: join(dir, 'ledger.jsonl') }, trusted: true, concurrency: 50 };
  return {
    models: { small: { provider: 'ollama', model: 'fake', base_url: modelUrl, context_window: options.contextWindow ?? 32_768, max_output_tokens: 1024 } },
    chains: { default: { models: ['small'] } },
    mcp_servers: { t: tools },
    tools: { 't/keyed_row': { effect: 'idempotent' } },
    agents: { tester: { instructions: 'Test.', chain: 'default', tools: ['t/*'], limits: { max_turns: 60, ...options.limits } } },
    ...(typeof options.config === 'function' ? options.config(modelUrl) : options.config),
  };
}

/** Four turns with a call without a key and one with a key each, then an answer. */
export function usualScript(body: ChatBody) {
  const results = (body.messages ?? []).filter((message) => message.role === 'tool').length;
  const delivery = { delayMs: 20, chunkDelayMs: 3 };
  const usage = { prompt: usagePerReply.input, output: usagePerReply.output };
  if (results >= toolTurns * 2) return reply({ text: 'All rows are there, and that is all.', usage, pieces: 4 }, delivery);
  const calls = [{ id: null, name: 't__row', args: { v: String(results) } }, { id: null, name: 't__keyed_row', args: { v: String(results) } }];
  return reply({ text: 'I write two rows, one of them with a key.', pieces: 4, calls, usage }, delivery);
}

export interface Posted { readonly id: string; readonly key: string }

/** Posts until there is an answer that says what became of it, as a client with a key does. Throws after a minute (large: ten) without one. */
export async function post(url: string, key: string, body: object): Promise<{ readonly status: number; readonly id: string | null }> {
  const end = Date.now() + scaled({ small: 60_000, large: 600_000 });
  for (;;) {
    // The API may be away, or be killed in the middle.
    const { status, text } = await posted(url, key, body).catch((error: unknown) => ({ status: 599, text: String(error) }));
    if (status < 500) return { status, id: (JSON.parse(text) as { id?: string }).id ?? null };
    if (Date.now() > end) throw new Error(`${key} was not accepted in all this time; at last: ${text.slice(0, 1000)}`);
    await sleep(100);
  }
}

async function posted(url: string, key: string, body: object): Promise<{ readonly status: number; readonly text: string }> {
  const response = await fetch(`${url}/v1/runs`, { method: 'POST', headers: { 'content-type': 'application/json', 'idempotency-key': key }, body: JSON.stringify(body), signal: AbortSignal.timeout(10_000) });
  return { status: response.status, text: await response.text() };
}

/** Posts a run for each key, which also stands in its input. */
export async function postRuns(stage: ChaosStage, keys: readonly string[], agentOf: (key: string) => string = () => 'tester', more: object = {}): Promise<Posted[]> {
  const posted: Posted[] = [];
  const rest = [...keys];
  await Promise.all(Array.from({ length: 8 }, async () => {
    for (let key = rest.shift(); key !== undefined; key = rest.shift()) {
      const { status, id } = await post(stage.url, key, { agent: agentOf(key), input: `Write rows. [[${key}]]`, ...more });
      if (id === null) throw new Error(`${key} was answered ${status}`);
      posted.push({ id, key });
    }
  }));
  return posted;
}

/** Three readers per run. */
export function readAll(stage: ChaosStage, ids: readonly string[], random: Random): BreakingReader[] {
  return ids.flatMap((id) => [1, 2, 3].map(() => startReader(stage.url, id, randomFrom(Math.floor(random() * 2 ** 32)))));
}

const ended = ['completed', 'expired', 'failed', 'cancelled'];

/** Resolves when all runs have ended and are archived whole. */
export async function allEnded(stage: ChaosStage, ids: readonly string[], timeoutMs: number): Promise<void> {
  const open = new Set(ids);
  await until(`all ${ids.length} runs end and are archived`, async () => {
    for (const id of open) {
      const run = await stage.client.run(id).catch(() => null);
      if (run !== null && ended.includes(run.status) && (run as { archived_seq?: number }).archived_seq === run.last_seq) open.delete(id);
      else if (open.size > 20) break;
    }
    return open.size === 0;
  }, timeoutMs).catch(async (error: unknown) => {
    const some = await Promise.all([...open].slice(0, 5).map(async (id) => JSON.stringify(await stage.client.run(id).catch(String)).slice(0, 1500)));
    throw new Error(`${String(error)}: ${open.size} are left, such as\n${some.join('\n')}\n${[...stage.workers.complaints, ...stage.api.complaints].join('\n').slice(0, 4000)}`);
  });
}

/** The ids of all runs that the API lists, newest first. */
export async function listedRuns(stage: ChaosStage): Promise<string[]> {
  const ids: string[] = [];
  let cursor: string | null = null;
  do {
    const page: { data: readonly { id: string }[]; next_cursor: string | null } = await stage.client.runs({ limit: '200', ...(cursor === null ? {} : { cursor }) });
    ids.push(...page.data.map(({ id }) => id));
    cursor = page.next_cursor;
  } while (cursor !== null);
  return ids;
}

/**
 * After an ordinary collection; `least_rss` once the process has given back what it can, the room for young objects above all, which grows
 * and shrinks with what happens just then. `resources` are what node counts as active (sockets, timers and their like), `kinds` the
 * same by their names.
 */
export interface Memory { readonly heap: number; readonly rss: number; readonly least_rss: number; readonly resources: number; readonly kinds: Readonly<Record<string, number>> }

/** What is left in a process when its garbage has been collected. */
export async function memoryOf(role: Role): Promise<Memory> {
  const before = role.output().length;
  process.kill(role.pid, 'SIGUSR2');
  return until('the process says what is left', () => {
    const line = /^memory (\{.*\})$/m.exec(role.output().slice(before))?.[1];
    return line === undefined ? undefined : JSON.parse(line) as Memory;
  });
}

/**
 * The same once no more than `resources` are left. What is on its way out (idle connections, timers of requests that are over) goes by
 * itself within a minute; what leaks does not.
 *
 * @throws {Error} That names what is left, when it does not go.
 */
export async function settledMemoryOf(role: Role, resources: number): Promise<Memory> {
  let last = await memoryOf(role);
  const end = performance.now() + 60_000;
  while (last.resources > resources) {
    if (performance.now() > end) throw new Error(`${last.resources} resources are left, where at most ${resources} should be: ${JSON.stringify(last.kinds)}`);
    await new Promise((resolve) => { setTimeout(resolve, 1000); });
    last = await memoryOf(role);
  }
  return last;
}

/** Reads everything that a history is made of. The processes go on. */
export async function historyOf(stage: ChaosStage, ids: readonly string[], readers: readonly BreakingReader[], more: Partial<History> = {}): Promise<History> {
  const runs: RunHistory[] = [];
  for (const id of ids) runs.push(await runHistory(stage, id, readers.filter((reader) => reader.run_id === id)));
  return { runs, ledger: stage.ledger(), keyedTools: ['keyed_row'], readTools: ['look'], refused: stage.model.violations, usagePerReply, planned: [], fired: [], ...more };
}

async function runHistory(stage: ChaosStage, id: string, readers: readonly BreakingReader[]): Promise<RunHistory> {
  const run = await stage.client.run(id) as Run & { usage: { input_tokens: number; output_tokens: number } };
  const response = await fetch(`${stage.url}/v1/runs/${id}/events`, { headers: { accept: 'application/x-ndjson' } });
  if (!response.ok) throw new Error(`the log of ${id}: HTTP ${response.status}`);
  const log = (await response.text()).split('\n').filter((line) => line !== '');
  const replay = await stage.client.replay(id);
  return {
    id, status: run.status, stop_reason: run.stop_reason ?? null, usage: run.usage, log, replay, archived: archivedLog(stage.s3, id), seen: readers.map((reader) => reader.seen),
  };
}

/** What the store of objects holds of a run, in order; segments may overlap. A seq with two different texts is told twice. */
export function archivedLog(s3: S3Server, run_id: string): string[] {
  const lines = new Map<number, string>();
  const doubled: string[] = [];
  for (const [key, bytes] of s3.objects) {
    if (!key.includes(`runs/${run_id}/events/`)) continue;
    for (const line of Buffer.from(bytes).toString().split('\n').filter((each) => each !== '')) {
      const { seq } = JSON.parse(line) as { seq: number };
      if (lines.has(seq) && lines.get(seq) !== line) doubled.push(line);
      lines.set(seq, line);
    }
  }
  return [...[...lines].sort(([a], [b]) => a - b).map(([, line]) => line), ...doubled];
}
