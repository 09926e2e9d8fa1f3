/**
 * The stage of the cases: the real API and worker processes, a real Redis, one strict model server and the case tools.
 *
 * Owns: the processes and servers, one script per label, the ledger file. States: started → stopped (`stop`).
 *
 * 1  Every run has a label, which stands in its own user message as `[[label]]`; the model server answers each request by the
 *    script of its label, so any number of runs share the stage.
 * 2  A list is used up in the order of the label's accepted requests; what is beyond it is refused, and is a fault of the case.
 * 3  An event stream is open on every run from its creation on.
 * 4  Every model, chain and agent is there once for each wire, unless it names one itself: `tiny` on Ollama's, `tiny_openai` and
 *    `tiny_anthropic`. A case says on which wire its run goes; the model server speaks all of them, with one record.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Run, RunRequest } from '@treadle/client';
import type { RunEvent } from '@treadle/core';
import { readLedger, startModelServer, status, text, type ChatBody, type LedgerLine, type ModelServer, type RecordedRequest, type ScriptedReply } from '@treadle/testkit';
import { startStage, type Role, type Stage } from '../e2e/processes.ts';
import { wires, type Wire } from './speech.ts';
import { messagesIn } from './wire.ts';

/** What the model says to a label: a list, or a function of the request, of how many came before it, and of the key it came with. */
export type Script = readonly ScriptedReply[] | ((body: ChatBody, count: number, key: string) => ScriptedReply);

export interface CasesOptions {
  /**
   * Entries of `models` by name, each with the fake's address and its own name filled in; one with a `provider` is there on that wire
   * alone. `small` is always there.
   */
  readonly models?: Readonly<Record<string, { readonly provider?: Wire; readonly [field: string]: unknown }>>;
  readonly chains?: Readonly<Record<string, readonly string[]>>;
  /** Entries of `agents`; `tester`, with every case tool and a window of 32,768 tokens, is always there. */
  readonly agents?: Readonly<Record<string, object>>;
  readonly tools?: Readonly<Record<string, object>>;
  readonly env?: Readonly<Record<string, string>>;
  /** Other parts of the configuration, as they are; entries of `mcp_servers` beside the case tools. */
  readonly config?: Readonly<Record<string, object>>;
  /** The server `ops` is there, whose tools nobody should use unasked; an agent has them where it names them. */
  readonly ops?: boolean;
  /** With the tools of `functions.config.ts`. */
  readonly functions?: boolean;
}

/** What a case asks of its run beside the label. */
export type CaseRequest = Partial<RunRequest> & {
  readonly session_id?: string;
  /** Default: Ollama's, or those of the agent's chain. */
  readonly wire?: Wire;
  /** Requests that the strict validator may refuse, where the case is about what becomes of a refusal; default 0. */
  readonly refusals?: number;
};

export interface Cases {
  readonly stage: Stage;
  readonly model: ModelServer;
  /** Starts one more worker. */
  worker(over?: Readonly<Record<string, string>>): Promise<Role>;
  /** Ends a process in a way that the case wants. */
  kill(role: Role): Promise<void>;
  /** Processes that ended although nobody asked them to, and what they complained of. */
  casualties(): string[];
  begin(label: string, script: Script, request?: CaseRequest): Promise<LiveRun>;
  /** What the model says to a run that another one starts, with `[[label]]` in its input. */
  say(label: string, script: Script): void;
  /** Follows a run that another one has started. */
  join(label: string, id: string): LiveRun;
  ledger(): LedgerLine[];
  /** Throws what the model server refused and what a script lacked, if it did. */
  stop(): Promise<void>;
}

export interface LiveRun {
  readonly id: string;
  readonly label: string;
  /** On which all of its requests must go; null where the case does not say. */
  readonly wire: Wire | null;
  readonly refusals: number;
  /** What its event stream has shown so far. */
  readonly seen: readonly RunEvent[];
  /** Settles when the stream has come to its end. @throws where it does not within the time, ms. */
  ended(withinMs?: number): Promise<Run>;
  /** Chat requests of its label, summaries of the middle apart. */
  requests(): RecordedRequest[];
  /** Scripted replies that nobody asked for. */
  unused(): number;
  /** Calls that a tool saw begin. */
  starts(tool?: string): LedgerLine[];
}

interface Part { readonly script: Script; readonly refusals: number; count: number }

/** All cases share one host: what some of them make of it would keep the others waiting. A case about breakers sets its own. */
const apart = { TREADLE_BREAKER_VOLUME: '1000000' };

export async function startCases(options: CasesOptions = {}): Promise<Cases> {
  const dir = mkdtempSync(join(tmpdir(), 'treadle-cases-'));
  const ledgerFile = join(dir, 'ledger.jsonl');
  const parts = new Map<string, Part>();
  const faults: string[] = [];
  const model = await startModelServer({ script: (body, _index, _dialect, headers) => answer({ parts, faults }, body, String(headers.authorization ?? '').replace('Bearer ', '')) });
  const release = async (): Promise<void> => {
    await model.close();
    rmSync(dir, { recursive: true, force: true });
  };
  const config = configOf(options, { url: model.url, ledgerFile });
  const configFile = join(dir, 'cases.json');
  writeFileSync(configFile, JSON.stringify(config));
  const functions = options.functions === true ? { TREADLE_CONFIG: join(import.meta.dirname, 'functions.config.ts'), CASES_CONFIG: configFile } : {};
  const starting = startStage({ model: {}, env: { ...apart, WORKER_CONCURRENCY: '50', ...functions, ...options.env }, config });
  const stage = await starting.catch(async (error: unknown) => { await release(); throw error; });
  const roles: { role: Role; expected: boolean; ended: boolean }[] = [];
  const watch = (role: Role): Role => {
    const entry = { role, expected: false, ended: false };
    roles.push(entry);
    void role.exited.then(() => { entry.ended = true; });
    return role;
  };
  watch(stage.api);
  const ledger = (): LedgerLine[] => readLedger(ledgerFile);

  return {
    stage, model, ledger,
    worker: async (over) => watch(await stage.startWorker(over)),
    kill: async (role) => {
      for (const entry of roles) entry.expected ||= entry.role === role;
      role.kill('SIGKILL');
      await role.exited;
    },
    casualties: () => roles.flatMap(({ role, expected, ended }) => [
      ...(ended && !expected ? [`process ${role.pid} ended: ${role.output().slice(-2000)}`] : []),
      ...(/unhandled|uncaught|MaxListenersExceeded|InvariantBroken/i.test(role.output()) ? [role.output().slice(-2000)] : []),
    ]),
    say: (label, script) => { addPart(parts, label, script, 0); },
    join: (label, id) => follow(stage, { id, label, wire: null, part: parts.get(label)!, model, ledger }),
    begin: async (label, script, { wire, refusals = 0, agent = 'tester', ...request } = {}) => {
      const part = addPart(parts, label, script, refusals);
      const { id } = await stage.client.createRun({ agent: onWire(agent, wire ?? 'ollama'), input: `Case [[${label}]].`, ...request });
      return follow(stage, { id, label, wire: wire ?? null, part, model, ledger });
    },
    stop: async () => {
      await stage.stop();
      await release();
      const excused = new Set(model.requests.filter((request) => (parts.get(labelOf(request.body) ?? '')?.refusals ?? 0) > 0).map((request) => `request ${request.index}`));
      const problems = [...faults, ...model.violations.filter((violation) => !excused.has(violation.split(':')[0]!))];
      if (problems.length > 0) throw new Error(`the model server: ${problems.join('\n')}`);
    },
  };
}

function addPart(parts: Map<string, Part>, label: string, script: Script, refusals: number): Part {
  if (parts.has(label)) throw new Error(`the label ${label} is taken`);
  const part: Part = { script, refusals, count: 0 };
  parts.set(label, part);
  return part;
}

function configOf(options: CasesOptions, { url, ledgerFile }: { readonly url: string; readonly ledgerFile: string }): Record<string, unknown> {
  const models = { small: {}, ...options.models };
  const named = new Set(Object.entries(models).flatMap(([name, { provider }]: [string, { readonly provider?: Wire }]) => provider === undefined ? [] : [name]));
  const chains = { default: ['small'], ...options.chains };
  const agents: Record<string, { readonly chain?: string }> = { tester: {}, ...options.agents };
  const fixed = new Set(Object.entries(chains).flatMap(([name, list]) => list.some((model) => named.has(model)) ? [name] : []));
  const each = <Entry>(entries: Readonly<Record<string, Entry>>, make: (name: string, entry: Entry, wire: Wire) => object): object =>
    Object.fromEntries(Object.entries(entries).flatMap(([name, entry]) => wires.map((wire) => [onWire(name, wire), make(name, entry, wire)])));
  const { mcp_servers: servers = {}, ...rest } = options.config ?? {};
  return {
    ...rest,
    models: each(models, (name, own: { readonly provider?: Wire }, wire) => ({
      provider: wire, model: own.provider === undefined ? onWire(name, wire) : name, base_url: baseUrl(url, own.provider ?? wire), context_window: 32_768, max_output_tokens: 1024, ...own,
    })),
    chains: each(chains, (name, list, wire) => ({ models: fixed.has(name) ? list : list.map((model) => onWire(model, wire)) })),
    mcp_servers: { t: caseTools(ledgerFile, 'plain'), ...(options.ops === true ? { ops: caseTools(ledgerFile, 'ops') } : {}), ...servers },
    tools: { 't/keyed_note': { effect: 'idempotent' }, ...options.tools },
    agents: each(agents, (_, own, wire) => ({ instructions: 'Test.', tools: ['t/*'], ...own, chain: onWire(own.chain ?? 'default', wire) })),
  };
}

function caseTools(ledgerFile: string, which: 'plain' | 'ops'): object {
  return { command: process.execPath, args: [join(import.meta.dirname, 'case-tools.ts')], env: { LEDGER_FILE: ledgerFile, CASE_TOOLS: which }, trusted: true, concurrency: 100 };
}

function onWire(name: string, wire: Wire): string {
  return wire === 'ollama' ? name : `${name}_${wire}`;
}

/** OpenAI's clients are told the path, too. */
function baseUrl(url: string, wire: Wire): string {
  return wire === 'openai' ? `${url}/v1` : url;
}

/** A summary of the middle is asked for without the first user message, and so without a label. */
const summary = text('So far pages were read, and nothing is decided.');

function answer({ parts, faults }: { readonly parts: ReadonlyMap<string, Part>; readonly faults: string[] }, body: ChatBody, key: string): ScriptedReply {
  const label = labelOf(body);
  const part = label === null ? undefined : parts.get(label);
  if (part === undefined) {
    if (messagesIn(body)[0]?.content.startsWith('Summarise this part') === true) return summary;
    faults.push(`a request without a label: ${JSON.stringify(body).slice(0, 300)}`);
    return status(500, {}, { error: 'no label' });
  }
  const { script } = part;
  const at = part.count++;
  if (typeof script === 'function') return script(body, at, key);
  const entry = script[at];
  if (entry !== undefined) return entry;
  faults.push(`${String(label)}: request ${at + 1} is beyond its script of ${script.length}`);
  return status(400, {}, { error: 'beyond the script' });
}

/** Of the last user message that has one: a session holds the messages of the runs before. */
function labelOf(body: ChatBody | null): string | null {
  const labels = messagesIn(body ?? {}).flatMap(({ role, content }) => role === 'user' ? /\[\[([^\]]+)\]\]/.exec(content)?.[1] ?? [] : []);
  return labels.at(-1) ?? null;
}

interface Following { readonly id: string; readonly label: string; readonly wire: Wire | null; readonly part: Part; readonly model: ModelServer; readonly ledger: () => LedgerLine[] }

function follow(stage: Stage, { id, label, wire, part, model, ledger }: Following): LiveRun {
  const seen: RunEvent[] = [];
  const closed = new AbortController();
  const whole = (async () => {
    for await (const event of stage.client.events(id, { signal: closed.signal })) seen.push(event);
  })();
  whole.catch(() => undefined);
  return {
    id, label, wire, refusals: part.refusals, seen,
    ended: async (withinMs = 30_000) => {
      let timer: NodeJS.Timeout | undefined;
      const late = new Promise<never>((_, reject) => {
        timer = setTimeout(() => {
          closed.abort();
          reject(new Error(`${label} has not ended within ${withinMs} ms; its last events: ${JSON.stringify(seen.slice(-6))}`));
        }, withinMs);
      });
      await Promise.race([whole, late]).finally(() => { clearTimeout(timer); });
      return stage.client.run(id);
    },
    requests: () => model.requests.filter((request) => labelOf(request.body) === label),
    unused: () => typeof part.script === 'function' ? 0 : Math.max(0, part.script.length - part.count),
    starts: (tool) => ledger().filter((line) => line.run_id === id && line.phase === 'start' && (tool === undefined || line.tool === tool)),
  };
}
