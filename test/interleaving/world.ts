/**
 * The world of the interleaving test: one run on a store, a model and tools that keep their own ledger, and
 * workers that can be stopped at any of their port calls, as a crash or as a zombie that goes on later.
 *
 * What stands in for production: a stopped worker's job stays in the queue and is delivered again (BullMQ's stalled check);
 * a zombie is a process that was frozen past its lease; `resend` is ioredis sending an unanswered command again after a
 * reconnect; `rollBack` is a failover to a replica that lagged.
 */
import { defaultLimits, noJudgement, noUsage, type AgentSpec, type Command, type Message, type ModelReply, type RunEvent, type ToolDefinition } from '@treadle/core';
import { createChildRuns, createRun, executeTurn, HeldRuns, IncrementWriter, WarmRuns, type RunDirectory, type ToolRun, type TurnDeps, type TurnStore } from '@treadle/engine';
import { alwaysThere, testSpec, testTool } from '@treadle/testkit';
import type { Stage } from './stage.ts';
import { treeReply } from './tree.ts';

export interface Stop {
  /** The worker's port call, from 1. */
  readonly at: number;
  /** Whether the call was carried out before the worker stopped. */
  readonly done: boolean;
  readonly as: 'crash' | 'zombie';
  /** A zombie that has come back crashes so many port calls later, before (or after) that call is carried out. */
  readonly then?: { readonly after: number; readonly done: boolean };
}

export interface Mutations {
  /** Replies are committed together with the results of their calls. */
  readonly lateReply?: boolean;
  /** Nothing is written to the ledger. */
  readonly noLedger?: boolean;
  /** No mutation: the tool that writes asks a person when in doubt. */
  readonly asks?: boolean;
  /** No mutation: a person has to approve of each write. */
  readonly approves?: boolean;
  /** No mutation: the run starts three others, and waits for two of them (`tree.ts`). */
  readonly tree?: boolean;
}

export interface Start { readonly tool: string; readonly tool_use_id: string; readonly key: string }

export const runId = `run_${'0'.repeat(30)}00`;

/** A start is bounded by the store's own clock, which is a real one on Redis. */
const aheadOfAnyStoreMs = 4_000_000_000_000;

export class World {
  readonly stage: Stage;
  /** Starts of tools, kept outside the product. */
  readonly starts: Start[] = [];
  /** Of them those that began while their batch waited for a person's word. */
  readonly early: Start[] = [];
  readonly requests: unknown[][] = [];
  readonly accepted: Command[] = [];
  /** Who holds the queue's lock on a job: only they can complete it. */
  readonly holders = new Map<string, Worker>();
  readonly mutations: Mutations;
  /** Called before every port call of any worker, with a count over all of them. */
  onStep: (step: number) => Promise<void> = () => Promise.resolve();
  #steps = 0;
  #ids = 0;

  constructor(stage: Stage, mutations: Mutations = {}) {
    this.stage = stage;
    this.mutations = mutations;
  }

  get store(): Stage['store'] { return this.stage.store; }

  async create(): Promise<void> {
    const deps = { store: this.store, clock: this.clock, random: this.random, shards: 1 };
    const spec = this.spec;
    const run = {
      tenant: 'default', spec, agent_version: 'sha256:test', input: 'go', metadata: {}, tags: [], priority: 50, run_at: null,
      limits: { ...defaultLimits, max_turns: 20, tool_budget: 50, turn_timeout_s: 60, max_observation_bytes: 1000 },
    };
    await createRun(deps, run, { run_id: runId, not_after_ms: Number.MAX_SAFE_INTEGER });
  }

  /** A sub-agent is made like the run that starts it, but for its name. */
  get spec(): AgentSpec {
    return this.mutations.tree === true ? testSpec({ tools: ['*', 'spawn_agent'], subagents: [{ name: 'helper', description: 'Helps.' }] }) : testSpec();
  }

  readonly clock = { nowMs: () => 1_700_000_000_000, monotonicMs: () => 0 };
  readonly random = { uuid: () => `id-${++this.#ids}`, jitter: () => 0 };

  async send(command: Command): Promise<boolean> {
    const reply = await this.store.command({ run_id: runId, command_id: `c${++this.#ids}`, command, not_after_ms: Number.MAX_SAFE_INTEGER });
    if (reply.type === 'accepted') this.accepted.push(command);
    return reply.type === 'accepted';
  }

  /** Before each step of any worker. */
  async step(): Promise<void> {
    await this.onStep(++this.#steps);
  }

  /** Turn 1 asks for a read and a write, turn 2 for another write, turn 3 answers. Ids are new each time it is asked. */
  reply(messages: readonly { role: string }[]): ModelReply {
    const results = messages.filter((message) => message.role === 'tool').length;
    const call = (name: string, what: string) => ({ provider_id: `p${++this.#ids}`, name, input: { what }, problem: null });
    const base = { text: '', thinking: '', provider_data: null, finish: 'tool_calls', finish_raw: 'stop', usage: noUsage } as const;
    if (this.mutations.tree === true) return treeReply(messages as readonly Message[], base, () => `p${++this.#ids}`);
    if (results === 0) return { ...base, calls: [call('look', 'a'), call('write', 'first')] };
    if (results === 2) return { ...base, calls: [call('write', 'second')] };
    return { ...base, text: 'done', calls: [], finish: 'stop' };
  }
}

export class Worker {
  readonly world: World;
  readonly #stop: Stop | null;
  #calls = 0;
  #resume: () => void = () => undefined;
  #stopped: () => void = () => undefined;
  /** Resolves when the worker has stopped where it should. */
  readonly stopped = new Promise<'stopped'>((resolve) => { this.#stopped = () => resolve('stopped'); });
  #markCrashed: () => void = () => undefined;
  readonly #crashed = new Promise<void>((resolve) => { this.#markCrashed = resolve; });
  readonly #goOn = new Promise<void>((resolve) => { this.#resume = resolve; });
  /** The last requests to the store, so that a test can send them again. */
  readonly sent: (() => Promise<unknown>)[] = [];
  delivery: Promise<unknown> = Promise.resolve();
  readonly #warm = new WarmRuns();

  constructor(world: World, stop: Stop | null) {
    this.world = world;
    this.#stop = stop;
  }

  /** A zombie goes on, to its end or to where it stops again. */
  resume(): Promise<unknown> {
    this.#resume();
    return Promise.race([this.delivery, this.#crashed]);
  }

  /** Takes the first job; resolves when the delivery is over or the worker has stopped. */
  async deliver(skips: (key: string) => boolean = () => false): Promise<'over' | 'stopped' | 'no job'> {
    const job = (await this.world.stage.jobs()).find(({ run_id, n }) => !skips(`${run_id}-${n}`));
    if (job === undefined) return 'no job';
    const key = `${job.run_id}-${job.n}`;
    this.world.holders.set(key, this);
    const turn = executeTurn(this.#deps(), job, new AbortController().signal)
      .then(async (outcome) => { if (outcome === 'done' && this.world.holders.get(key) === this) await this.world.stage.removeJob(job); });
    this.delivery = turn;
    turn.catch(() => undefined);
    return Promise.race([turn.then(() => 'over' as const), this.stopped]);
  }

  async #gate<T>(call: () => Promise<T>): Promise<T> {
    await this.world.step();
    const count = ++this.#calls;
    const stop = this.#stop;
    const again = stop?.then !== undefined && count === stop.at + stop.then.after ? stop.then : null;
    if (again !== null) return this.#crash(again.done ? call : null);
    if (stop === null || count !== stop.at) return call();
    if (!stop.done) {
      await this.#wait();
      return call();
    }
    const answer = await call();
    await this.#wait();
    return answer;
  }

  async #crash<T>(call: (() => Promise<T>) | null): Promise<T> {
    if (call !== null) await call();
    this.#markCrashed();
    return new Promise(() => undefined);
  }

  async #wait(): Promise<void> {
    this.#stopped();
    if (this.#stop?.as === 'crash') await new Promise(() => undefined);
    await this.#goOn;
  }

  #write<T>(call: () => Promise<T>): Promise<T> {
    this.sent.push(call);
    return this.#gate(call);
  }

  #deps(): TurnDeps {
    const { world } = this;
    const real = mutated(world.store, world.mutations);
    const store: TurnStore = {
      claim: (request) => this.#write(() => real.claim(request)),
      commit: (commit) => this.#write(() => real.commit(commit)),
      appendMany: (appends) => this.#write(() => real.appendMany(appends)),
      watch: (requests) => real.watch(requests),
      handBack: (claim) => real.handBack(claim),
      writeBack: (back) => this.#write(() => real.writeBack(back)),
      recount: (claims, by) => real.recount(claims, by),
      finished: (run_id) => real.finished(run_id),
    };
    return {
      store, clock: world.clock, random: world.random, warm: this.#warm, worker: 'w', limits: { poison: 100, nudges: 5 },
      archive: { putBlob: () => Promise.resolve('blob'), getBlob: () => Promise.resolve(null), events: () => Promise.resolve([]) }, increments: new IncrementWriter({ store, random: world.random }), held: new HeldRuns(store),
      ...this.#children(real), judge: { judge: () => noJudgement }, history: () => Promise.resolve([]),
      models: { ...alwaysThere, call: ({ request }) => this.#gate(() => {
        world.requests.push([...request.messages]);
        return Promise.resolve({ type: 'replied', reply: world.reply(request.messages) });
      }) },
      tools: {
        catalogue: () => Promise.resolve({ tools: [...this.#spawnTool(), testTool('look'), testTool('write', { effect: 'once', parallel: 'serial', ...(world.mutations.asks === true ? { on_unknown: 'ask' as const } : {}), ...(world.mutations.approves === true ? { approval: { timeout_s: null, on_timeout: 'deny' as const } } : {}) })], problems: [] }),
        check: () => null, asks: ({ name }) => world.mutations.approves === true && name === 'write',
        run: (run) => this.#gate(() => this.#carryOut(run)),
      },
    };
  }

  #spawnTool(): ToolDefinition[] {
    return this.world.mutations.tree === true ? [testTool('spawn_agent', { builtin: 'spawn_agent', effect: 'idempotent' })] : [];
  }

  #children(real: TurnStore): Pick<TurnDeps, 'children'> {
    const { world } = this;
    if (world.mutations.tree !== true) return {};
    const directory: RunDirectory = {
      ...world.store, ...real, create: (run) => this.#write(() => world.store.create(run)), read: (run_id, without) => this.#gate(() => world.store.read(run_id, without)),
    };
    return { children: createChildRuns({
      store: directory, archive: { getRun: () => Promise.resolve(null) }, clock: { ...world.clock, nowMs: () => aheadOfAnyStoreMs }, random: world.random, shards: 1,
      agent: (name) => name === 'helper' ? { spec: { ...world.spec, name }, version: 'sha256:test' } : null,
    }) };
  }

  /** Whether the log asks for words that it does not have, in the batch of this call. */
  async #waits(tool_use_id: string): Promise<boolean> {
    const log = ((await this.world.store.events(runId, 0, 10_000))?.events ?? []).map((text) => JSON.parse(text) as RunEvent);
    const reply = log.findIndex((event) => event.type === 'tool_use' && event.tool_use_id === tool_use_id);
    const batch = log.slice(reply).filter((event) => event.turn_number === log[reply]?.turn_number);
    const asked = batch.filter((event) => event.type === 'approval_requested').length;
    return asked === 0 || batch.filter((event) => event.type === 'approval_resolved').length < asked;
  }

  async #carryOut(run: ToolRun) {
    const what = (run.input as { what: string }).what;
    const start = { tool: `${run.tool.name} ${what}`, tool_use_id: run.tool_use_id, key: run.idempotency_key };
    this.world.starts.push(start);
    if (this.world.mutations.approves === true && await this.#waits(run.tool_use_id)) this.world.early.push(start);
    return { content: `did ${what}`, is_error: false, settled: true };
  }
}

/** The store with a protection of the engine's use of it taken away. */
function mutated(store: TurnStore, mutations: Mutations): TurnStore {
  let kept: Parameters<TurnStore['commit']>[0] | null = null;
  return {
    ...store,
    claim: async (request) => {
      const reply = await store.claim(request);
      return mutations.noLedger === true && reply.type === 'claimed' ? { ...reply, ledger: [] } : reply;
    },
    commit: async (commit) => {
      const plain = mutations.noLedger === true ? { ...commit, ledger: [] } : commit;
      if (mutations.lateReply !== true) return store.commit(plain);
      if (commit.events.some((event) => event.includes('"tool_use"')) && commit.next.type === 'keep') {
        kept = commit;
        return { type: 'committed', inbox: [] };
      }
      if (kept === null || commit.claim.claim_id !== kept.claim.claim_id || commit.events.length === 0) return kept === null ? store.commit(commit) : { type: 'committed', inbox: [] };
      const joined = {
        ...commit, expected_seq: kept.expected_seq, events: [...kept.events, ...commit.events], ledger: [...kept.ledger, ...commit.ledger],
        changes: { ...commit.changes, fields: { ...kept.changes.fields, ...commit.changes.fields }, messages: [...kept.changes.messages, ...commit.changes.messages] },
      };
      kept = null;
      return store.commit(joined);
    },
  };
}
