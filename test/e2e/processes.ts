/**
 * The real processes for end-to-end tests: an API and workers as a container would run them, a Redis that fsyncs, the scripted
 * model server, test tools over MCP with a ledger outside the product.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { nodeFlags } from '@treadle/cli/node-flags';
import { createClient, type Client } from '@treadle/client';
import { readLedger, startModelServer, startRedis, testMcpServer, type LedgerLine, type ModelServer, type ModelServerOptions, type RedisServer } from '@treadle/testkit';

export const root = join(import.meta.dirname, '../..');
const cli = join(root, 'apps/cli/src/main.ts');

export interface Role {
  readonly url: string;
  readonly pid: number;
  readonly output: () => string;
  kill(signal?: NodeJS.Signals): void;
  readonly exited: Promise<number | null>;
}

/** A process has ended before it said that it is ready. */
export class EndedEarly extends Error {
  /** Null where a signal ended it. */
  readonly code: number | null;

  constructor(role: string, code: number | null, output: string) {
    super(`${role} ended with ${code ?? 'a signal'}: ${output}`);
    this.code = code;
  }
}

/** A process that has not said by then that it is ready never will. */
const startMs = 60_000;

/**
 * Starts one process, as the product starts it, and waits until it says that it is ready. `script`: the executable, by default the product's.
 *
 * @throws {EndedEarly} With its output, when it ends before.
 * @throws {Error} The same, when it is not ready within a minute; it is ended.
 */
export async function startProcess(role: 'api' | 'worker', env: Readonly<Record<string, string>>, script = cli): Promise<Role> {
  const child = spawn(process.execPath, [...nodeFlags, script, role], { env: { ...bare(), ...env }, stdio: ['ignore', 'pipe', 'pipe', 'ipc'] });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', (chunk: Buffer) => { output += chunk.toString(); });
  const exited = new Promise<number | null>((resolve) => { child.once('exit', (code) => { resolve(code); }); });
  let late: NodeJS.Timeout | undefined;
  const url = await new Promise<string>((resolve, reject) => {
    child.once('message', (message) => { resolve((message as { url: string }).url); });
    void exited.then((code) => { reject(new EndedEarly(role, code, output)); });
    late = setTimeout(() => {
      reject(new Error(`${role} was not ready within ${startMs} ms: ${output}`));
      child.kill('SIGKILL');
    }, startMs);
  }).finally(() => { clearTimeout(late); });
  return { url, pid: child.pid!, output: () => output, kill: (signal = 'SIGKILL') => { child.kill(signal); }, exited };
}

export interface CommandRun { readonly code: number | null; readonly stdout: string; readonly stderr: string }

/** Runs `treadle …` to its end. */
export async function treadle(args: readonly string[], options: { readonly env?: Readonly<Record<string, string>>; readonly cwd?: string } = {}): Promise<CommandRun> {
  const child: ChildProcess = spawn(process.execPath, [cli, ...args], { env: { ...bare(), ...options.env }, cwd: options.cwd ?? root, stdio: ['ignore', 'pipe', 'pipe'] });
  const out = { stdout: '', stderr: '' };
  child.stdout?.on('data', (chunk: Buffer) => { out.stdout += chunk.toString(); });
  child.stderr?.on('data', (chunk: Buffer) => { out.stderr += chunk.toString(); });
  const code = await new Promise<number | null>((resolve) => { child.once('close', resolve); });
  return { code, ...out };
}

/** Nothing of the developer's own settings reaches the processes under test. */
function bare(): Record<string, string> {
  return Object.fromEntries(['PATH', 'HOME', 'TMPDIR', 'LANG'].flatMap((name) => process.env[name] === undefined ? [] : [[name, process.env[name]!]]));
}

/** Where the processes find their Redis, of whatever kind. */
export interface StageRedis { readonly url: string; stop(): Promise<void> }

export interface Stage<R extends StageRedis = RedisServer> {
  readonly dir: string;
  readonly redis: R;
  readonly model: ModelServer;
  readonly api: Role;
  readonly client: Client;
  readonly env: Readonly<Record<string, string>>;
  startWorker(over?: Readonly<Record<string, string>>): Promise<Role>;
  ledger(): LedgerLine[];
  stop(): Promise<void>;
}

export interface StageOptions<R extends StageRedis = RedisServer> {
  /** By default one server that fsyncs. The stage stops it. */
  readonly redis?: () => Promise<R>;
  /** Speaks as Ollama does unless it says otherwise. */
  readonly model: ModelServerOptions;
  readonly agent?: Readonly<Record<string, unknown>>;
  readonly tools?: Readonly<Record<string, unknown>>;
  /** Takes the place of what is there by default; told the model server's address. */
  readonly config?: Readonly<Record<string, unknown>> | ((modelUrl: string) => Readonly<Record<string, unknown>>);
  readonly env?: Readonly<Record<string, string>>;
}

/** An API with one agent, `tester`, whose tools are those of the test MCP server; no worker yet. */
export async function startStage(options: StageOptions): Promise<Stage>;
export async function startStage<R extends StageRedis>(options: StageOptions<R> & { readonly redis: () => Promise<R> }): Promise<Stage<R>>;
export async function startStage(options: StageOptions<StageRedis>): Promise<Stage<StageRedis>> {
  const dir = mkdtempSync(join(tmpdir(), 'treadle-e2e-'));
  const ledgerFile = join(dir, 'ledger.jsonl');
  const [redis, model] = await Promise.all([(options.redis ?? startRedis)(), startModelServer({ dialect: 'ollama', ...options.model })]);
  const config = {
    models: { small: { provider: 'ollama', model: 'fake', base_url: model.url, context_window: 32_768, max_output_tokens: 1024 } },
    chains: { default: { models: ['small'] } },
    mcp_servers: { test: testMcpServer({ ledgerFile }) },
    tools: options.tools ?? {},
    agents: { tester: { instructions: 'Test.', chain: 'default', tools: ['test/*'], ...options.agent } },
    ...(typeof options.config === 'function' ? options.config(model.url) : options.config),
  };
  const configFile = join(dir, 'treadle.config.json');
  writeFileSync(configFile, JSON.stringify(config));
  const env = {
    REDIS_URL: redis.url, ARCHIVE_DIR: join(dir, 'archive'), TREADLE_CONFIG: configFile, PORT: '0', METRICS_PORT: '0', LOG_LEVEL: 'warn', TREADLE_LEASE_MS: '2000',
    ...options.env,
  };
  const api = await startProcess('api', env);
  const started: Role[] = [api];
  return {
    dir, redis, model, api, env, client: createClient({ url: api.url, reconnectMs: 50 }), ledger: () => readLedger(ledgerFile),
    startWorker: async (over = {}) => {
      const worker = await startProcess('worker', { ...env, ...over });
      started.push(worker);
      return worker;
    },
    stop: async () => {
      for (const each of started) each.kill('SIGTERM');
      const bound = setTimeout(() => { for (const each of started) each.kill(); }, 10_000);
      await Promise.all(started.map((each) => each.exited));
      clearTimeout(bound);
      await Promise.all([model.close(), redis.stop()]);
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

/** Looks again and again until `condition` gives a value; throws with `what` when the time is over. */
export async function until<T>(what: string, condition: () => Promise<T | undefined | false> | T | undefined | false, timeoutMs = 30_000): Promise<T> {
  const end = Date.now() + timeoutMs;
  for (;;) {
    // A look that hangs is none.
    const late = new AbortController();
    const value = await Promise.race([condition(), sleep(end - Date.now() + 10_000, undefined, { signal: late.signal })]).finally(() => { late.abort(); });
    if (value !== undefined && value !== false) return value;
    if (Date.now() > end) throw new Error(`${what}: not within ${timeoutMs} ms`);
    await new Promise((resolve) => { setTimeout(resolve, 50); });
  }
}
