/**
 * Accepting a run: its first events, folded and written with its first job in one step.
 * A request answered `too_late` or by an exception from a store that was not reached does not happen afterwards.
 */
import {
  encodeEvent, evolve, idIn, initialState, stamp, stateChanges, wellFormed, type AgentSpec, type ChainSpec, type Content, type EventBody, type Limits, type Message, type RunState, type WebhookTarget,
} from '@treadle/core';
import type { Clock, Randomness } from './ports/clock.ts';
import type { Claim, CreateReply, RunDirectory } from './ports/run-store.ts';
import { noTracer, traced, type Span, type Tracer } from './ports/tracer.ts';

export interface NewRun {
  readonly tenant: string;
  readonly spec: AgentSpec;
  readonly agent_version: string;
  readonly limits: Limits;
  /** Null only for a fork, which may have nothing new to say. */
  readonly input: Content | null;
  /** What was said before, up to the point of the run that this one goes on from. */
  readonly fork?: { readonly from_run_id: string; readonly messages: readonly Message[]; readonly traceparent?: string | null };
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly tags: readonly string[];
  /** 1 (first) to 100. */
  readonly priority: number;
  /** ISO 8601, or null for at once. */
  readonly run_at: string | null;
  /** Null begins a session of the run's own. */
  readonly session_id?: string | null;
  /** What happens while the session's current run has not ended. Default `reject`. */
  readonly when_busy?: 'reject' | 'queue';
  /** The schedule whose time has come. */
  readonly schedule_id?: string;
  /** Where its end is told. */
  readonly webhook?: WebhookTarget | null;
  /** The run that starts this one, by the claim under which it does. */
  readonly parent?: Claim;
  /** The span of whoever asks for it. Null or absent: the run begins a trace, if anybody traces. */
  readonly traceparent?: string | null;
}

export interface CreateDeps {
  readonly store: RunDirectory;
  readonly clock: Clock;
  readonly random: Randomness;
  /** How many shards new runs are spread over. */
  readonly shards: number;
  /** Without it nobody takes part in the trial of a model. */
  readonly arms?: Arms;
  /** Without it nobody traces; the run keeps what its caller says of a trace all the same. */
  readonly tracer?: Tracer;
}

/** Draws new runs for the trials of models. Never throws: where nobody knows of the trial the run is made as if there were none. */
export interface Arms {
  /** The chain as a new run is to have it. */
  assign(chain: ChainSpec, run: { readonly run_id: string; readonly run_at_ms: number | null }): Promise<ChainSpec>;
  /** The run was not created. */
  withdraw(chain: ChainSpec, run_id: string): Promise<void>;
}

/** A new run's id, on a shard drawn by chance. */
export function mintRunId(deps: Pick<CreateDeps, 'random' | 'shards'>): string {
  return idIn('run', Math.min(Math.floor(deps.random.jitter() * deps.shards), deps.shards - 1), deps.random.uuid());
}

export interface CreateOptions {
  readonly run_id: string;
  /** Epoch milliseconds of the store's clock after which nothing may happen any more. */
  readonly not_after_ms: number;
}

/** Throws when the store's answer is unclear: asking again with the same id tells. */
export async function createRun(deps: CreateDeps, run: NewRun, options: CreateOptions): Promise<Creation> {
  const { run_id } = options;
  const session_id = run.session_id ?? idIn('ses', Number.parseInt(run_id.slice(-2), 16), deps.random.uuid());
  const { spec: { name: agent }, agent_version, tenant, fork, traceparent = null } = run;
  const span = (deps.tracer ?? noTracer).begin({ type: 'run_creation', run_id, session_id, tenant, agent, agent_version }, { parent: traceparent, link: fork?.traceparent ?? null });
  return traced(span, () => create(deps, run, { ...options, session_id, span }), ({ reply }) => ({ type: 'run_creation', reply: reply.type }));
}

interface Creation { readonly reply: CreateReply; readonly state: RunState }

async function create(deps: CreateDeps, run: NewRun, options: CreateOptions & { readonly session_id: string; readonly span: Span }): Promise<Creation> {
  const { session_id } = options;
  const joins = run.session_id ?? null;
  const run_at_ms = run.run_at === null ? null : Date.parse(run.run_at);
  const chain = await deps.arms?.assign(run.spec.chain, { run_id: options.run_id, run_at_ms }) ?? run.spec.chain;
  const traceparent = options.span.traceparent ?? run.traceparent ?? null;
  const bodies: EventBody[] = [
    {
      type: 'run_created', rules: 2, agent: run.spec.name, agent_version: run.agent_version, agent_spec: { ...run.spec, chain }, session_id, parent_run_id: run.parent?.run_id ?? null,
      forked_from: run.fork?.from_run_id ?? null, tenant: run.tenant, limits: run.limits, chain: run.spec.chain.name, tools: run.spec.tools, metadata: run.metadata,
      tags: run.tags, priority: run.priority, run_at: run.run_at, ...(traceparent === null ? {} : { traceparent }),
      concurrency_key: null, start_within_s: null, webhook: run.webhook ?? null, schedule_id: run.schedule_id ?? null, history: null,
    },
    ...(run.fork === undefined || run.fork.messages.length === 0 ? [] : [{ type: 'session_history' as const, generation: 2, from_run_id: run.fork.from_run_id, messages: run.fork.messages }]),
    ...(run.input === null ? [] : [{ type: 'user_message' as const, content: wellFormed(run.input) }]),
  ];
  let state: RunState = { ...initialState, run_id: options.run_id };
  const events = bodies.map((body) => {
    const event = stamp(state, body, deps.clock.nowMs() / 1000, 0);
    state = evolve(state, event);
    return encodeEvent(event);
  });
  const reply = await deps.store.create({
    run_id: options.run_id, tenant: run.tenant, agent: run.spec.name, tags: run.tags, priority: run.priority, events, last_ts: state.last_ts,
    session: { id: session_id, mode: joins === null ? 'new' : 'join', when_busy: run.when_busy ?? 'reject' },
    parent: run.parent ?? null, changes: stateChanges(initialState, state), run_at_ms, not_after_ms: options.not_after_ms,
  });
  if (reply.type !== 'created' && reply.type !== 'exists') await deps.arms?.withdraw(chain, options.run_id);
  return { reply, state };
}
