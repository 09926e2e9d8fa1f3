/**
 * One delivery of one run: claim, decide, commit, perform, until the run is handed on.
 *
 * E1  Nothing is performed whose reason is not committed.
 * E2  After `fenced` or an unclear answer nothing more is performed and no key touched.
 * E3  The job does not complete before the job it hands over to exists: the last commit adds it.
 * E4  Any delivery at any time is harmless and makes progress: what is there is read from the claim, never remembered.
 * E5  Nothing here sleeps to wait: a wait is a commit that ends the delivery.
 */
import { answerIn, answerOf, asked, assertNever, candidates, decide, estimateTokens, initialState, interpreted, isNewer, isSpawn, limitDue, noJudgement, restoreState, specOf, toolUses, turnTimeoutOf, type Decision, type Judgement, type Message, type ModelSpec, type OfferedChild, type Prices, type ReplyCall, type RunState, type ToolCallsSettled, type TurnClaimed, type TurnInput } from '@treadle/core';
import { digestsToApprove } from './approvals.ts';
import { putOffUntilArchived, type ArchiveFirst } from './archive-first.ts';
import { callModel, modelsTold, summarise } from './call-model.ts';
import { lookInto, type StoreFound } from './changed-store.ts';
import type { ChildRuns } from './child-runs.ts';
import type { HeldRuns } from './held-runs.ts';
import { RunHold, type HoldDeps, type LeaveReason } from './hold.ts';
import type { IncrementWriter } from './increments.ts';
import type { AnswerJudge } from './ports/answer-judge.ts';
import type { Archive } from './ports/archive.ts';
import type { Admission, ModelGateway, Permit } from './ports/model-gateway.ts';
import { StoreAway, type Claimed } from './ports/run-store.ts';
import type { ToolChanges, ToolRunner } from './ports/tool-runner.ts';
import { noSpan, noTracer, type Tracer } from './ports/tracer.ts';
import { ToolCalls } from './settle-tool-calls.ts';

export interface TurnDeps extends HoldDeps {
  readonly models: ModelGateway;
  /** What the models cost; who is not named is free. */
  readonly prices?: Prices;
  readonly tools: ToolRunner;
  readonly judge: AnswerJudge;
  /** What a run has said, wherever it is kept; empty where nobody knows it any more. */
  readonly history: (run_id: string) => Promise<readonly Message[]>;
  readonly archive: Pick<Archive, 'putBlob' | 'getBlob' | 'events'>;
  /** Told what came of looking into a store that is another than a run was written by. */
  readonly onOtherStore?: (run_id: string, found: StoreFound) => void;
  /** What of a run is not here, where a worker that has it is about: the run is left to that one. Null: it goes on here. */
  readonly elsewhere?: (state: RunState) => readonly string[] | null;
  /** Told why a run was put off for another worker. */
  readonly onNotHere?: (run_id: string, why: readonly string[]) => void;
  /** Without it no sub-agent can be started here. */
  readonly children?: ChildRuns;
  readonly increments: Pick<IncrementWriter, 'open'>;
  /** Without it nobody traces. */
  readonly tracer?: Tracer;
  /** Set in `strict` mode: no tool is begun before it has answered true. */
  readonly archiveFirst?: ArchiveFirst;
  readonly held: HeldRuns;
  /** The name of this worker in events. */
  readonly worker: string;
  readonly limits: DeliveryLimits;
  /** Told of a request to a model that nobody waits for any more: the log says nothing of it. */
  readonly onAborted?: (model: string, state: RunState) => void;
  /** Told of each delivery that took its run: how it ended, `threw` where that was an exception. */
  readonly onDelivered?: (how: LeaveReason | 'threw', state: RunState, epoch: number) => void;
}

export interface DeliveryLimits {
  /** Deliveries in a row that may end in neither hand-over nor hand-back. */
  readonly poison: number;
  /** Lost jobs in a row that the pump may add again. */
  readonly nudges: number;
}

/**
 * `done`: the run was handed on, or there was nothing to do. `left`: this delivery is over without a decision; the job goes
 * back to the queue.
 */
export type TurnOutcome = 'done' | 'left';

/** Throws when the store's answer is unclear: the delivery is over, and the next claim finds out what happened. */
export async function executeTurn(deps: TurnDeps, job: { readonly run_id: string; readonly n: number }, lease: AbortSignal): Promise<TurnOutcome> {
  const hold = await take(deps, job);
  if (hold === null) return 'done';
  const onLease = (): void => hold.hold.abort('lease');
  lease.addEventListener('abort', onLease, { once: true });
  deps.held.add(hold.hold);
  let timer: TurnTimer | null = null;
  try {
    if (lease.aborted) onLease();
    if (await leftToAnother(deps, hold) || await comesTooSoon(deps, hold)) return 'done';
    await quarantined(deps, hold);
    timer = new TurnTimer(deps, hold.hold);
    return await loop(deps, hold, timer);
  } catch (error) {
    // A run is not to blame for a store that cannot be reached. Whatever else is thrown counts: it would be thrown again.
    if (error instanceof StoreAway) await handBackSoon(deps, hold.hold);
    throw error;
  } finally {
    const how = hold.hold.left ?? 'threw';
    deps.onDelivered?.(how, hold.hold.state, hold.hold.claim.epoch);
    hold.hold.span.end({ type: 'turn', how, state: hold.hold.state });
    timer?.stop();
    hold.permit?.release();
    deps.held.quarantine.leave(hold.hold);
    deps.held.delete(hold.hold);
    lease.removeEventListener('abort', onLease);
    // Whatever still runs for this delivery ends with it.
    hold.hold.abort('done');
  }
}

/** Before anything is looked at: a run that a newer worker has written, or that lacks something and waits for nothing that would not need it. */
async function leftToAnother(deps: TurnDeps, held: Held): Promise<boolean> {
  const { hold, claimed } = held;
  const newer = claimed.stored !== null && isNewer(claimed.stored);
  if (newer) return putOff(deps, hold, ['a newer version has written it']);
  const decidesFirst = claimed.wait_ms > 0 || hold.commands.some(({ type }) => type === 'cancel' || type === 'pause');
  const lacking = decidesFirst ? null : lackingHere(deps, held);
  return lacking !== null && putOff(deps, hold, lacking);
}

/**
 * Of one that was woken before its time, or is to stop, it has to be decided first whether anything is to be done now: its own wait is not
 * to be lost, and to pause or cancel it needs nothing. What woke it is still there when another takes it.
 */
function lackingFor(deps: TurnDeps, held: Held, { effect }: Decision): readonly string[] | null {
  const { hold } = held;
  if (effect.type === 'end_run' && hold.commands.some(({ type }) => type === 'cancel')) return null;
  const needed = hold.state.candidate !== null || effect.type === 'call_model' || effect.type === 'settle_tool_calls' || effect.type === 'summarise';
  return needed ? lackingHere(deps, held) : null;
}

function lackingHere(deps: TurnDeps, { hold, claimed }: Held): readonly string[] | null {
  return claimed.other_store === null ? deps.elsewhere?.(hold.state) ?? null : null;
}

/** The run waits for a moment in the store, by the store's clock, and with all its commands: the pump gives it to whoever comes first, and no slot is held. */
async function putOff(deps: TurnDeps, hold: RunHold, why: readonly string[]): Promise<true> {
  deps.onNotHere?.(hold.claim.run_id, why);
  return comesAgain(hold, notHereMs * (1 + deps.random.jitter()));
}

async function comesAgain(hold: RunHold, delay_ms: number): Promise<true> {
  // It proves nothing about a run whose workers died.
  hold.tookOver = true;
  // A command that has come meanwhile waits with the others.
  while (await hold.putOff(Math.round(delay_ms), { past_commands: true }) === 'inbox_changed');
  return true;
}

const notHereMs = 300;

/** Looked at before anything else, of a run that would only ask a model: most of those that find no room are sent away here. */
async function comesTooSoon(deps: TurnDeps, held: Held): Promise<boolean> {
  const { hold, claimed } = held;
  const ends = claimed.deliveries > deps.limits.poison || claimed.nudges > deps.limits.nudges || limitDue(hold.state) !== null;
  const decidesFirst = ends || claimed.other_store !== null || hold.commands.some(({ type }) => type === 'cancel' || type === 'pause');
  return !decidesFirst && await crowdedOut(deps, hold, modelsToAsk(deps, held));
}

/** A model that has as many calls in flight here as it may have for now: the run comes again, here or elsewhere. It hops to no other model: nothing is wrong with this one yet. */
async function crowdedOut(deps: TurnDeps, hold: RunHold, models: readonly ModelSpec[]): Promise<boolean> {
  const wait_ms = models.length === 0 ? 0 : deps.models.crowdedMs({ run_id: hold.state.run_id, models });
  if (wait_ms <= 0) return false;
  // A trace would have one such delivery every two seconds.
  hold.span = noSpan;
  return comesAgain(hold, wait_ms * (1 + deps.random.jitter() / 4));
}

/** The turn would begin with a request for which it has no permit, since the room has gone meanwhile. A summary at the end of a run is not put off. */
async function findsNoRoom(deps: TurnDeps, { hold, permit }: Held, { effect }: Decision): Promise<boolean> {
  const asks = effect.type === 'call_model' || (effect.type === 'summarise' && effect.purpose.type === 'compaction');
  return permit === null && asks && crowdedOut(deps, hold, [effect.model]);
}

/** A run on its last chance is tried while no other run here can be blamed. A limit of one would make every run such a one. */
async function quarantined(deps: TurnDeps, { hold, claimed }: Held): Promise<void> {
  const { quarantine } = deps.held;
  const lastChance = claimed.deliveries === deps.limits.poison && deps.limits.poison > 1;
  if (lastChance) await quarantine.enter(hold, () => deps.held.all);
  else await quarantine.admit(hold);
}

/** Best effort, and late is harmless: the script is fenced. */
async function handBackSoon(deps: TurnDeps, hold: RunHold): Promise<void> {
  const bound = new Promise<void>((resolve) => { setTimeout(resolve, handBackMs).unref(); });
  await Promise.race([deps.store.handBack(hold.claim).catch(() => undefined), bound]);
}

const handBackMs = 2000;

interface Held {
  readonly hold: RunHold;
  readonly claimed: Claimed;
  /** Leave to ask a model, until it is used. */
  permit: Permit | null;
}

async function take(deps: TurnDeps, job: { readonly run_id: string; readonly n: number }): Promise<Held | null> {
  const claim_id = deps.random.uuid();
  const warm = deps.warm.get(job.run_id);
  const held = warm === undefined ? null : { epoch: warm.epoch, claim_id: warm.claim_id, last_seq: warm.state.last_seq };
  const claimed = await deps.store.claim({ ...job, claim_id, held });
  if (claimed.type !== 'claimed') {
    deps.warm.drop(job.run_id);
    return null;
  }
  const state = claimed.stored === null ? warm?.state : restoreState(initialState, claimed.stored);
  if (state === undefined) throw new Error(`the store says that the held state of ${job.run_id} is current, but none is held`);
  const claim = { run_id: job.run_id, n: job.n, epoch: claimed.epoch, claim_id };
  const hold = new RunHold(deps, { claim, state, inbox: claimed.inbox, inbox_in: claimed.inbox_in, ledger: claimed.ledger });
  hold.span = (deps.tracer ?? noTracer).begin({ type: 'turn', state, claimed, job_n: job.n, worker: deps.worker }, { parent: state.traceparent });
  return { hold, claimed, permit: null };
}

async function loop(deps: TurnDeps, held: Held, timer: TurnTimer): Promise<TurnOutcome> {
  const { hold } = held;
  const calls = new ToolCalls(deps, hold, timer);
  hold.tookOver = calls.begunEarlier().some((call) => call.outcome === 'unknown');
  const lost = await lookedInto(deps, held);
  if (lost === 'over') return hold.left === 'done' ? 'done' : leave(deps, hold);
  if (lost === null && await putOffUntilArchived(deps, hold) === 'committed') return 'done';
  if (hold.left !== null) return leave(deps, hold);
  let input: TurnInput = { ...await claimedInput(deps, held, calls), ...(lost === null ? {} : { lost: lost.problem }) };
  for (;;) {
    if (hold.left !== null) return leave(deps, hold);
    // A pause between two groups leaves no call running alone.
    while (input.type === 'tool_calls_settled' && calls.running && willPause(hold, input)) input = await calls.rest(input);
    if (hold.left !== null) return leave(deps, hold);
    // From here to the write nothing may be awaited: the write says which commands the decision has seen.
    const decision = decide(hold.state, { ...input, commands: hold.commands } as TurnInput);
    const lacking = input.type === 'turn_claimed' ? lackingFor(deps, held, decision) : null;
    if (lacking !== null && await putOff(deps, hold, lacking)) return 'done';
    if (input.type === 'turn_claimed' && await findsNoRoom(deps, held, decision)) return 'done';
    const written = await hold.decided(decision, calls.ledgerFor(decision, input));
    if (written === 'fenced') return 'left';
    if (written === 'inbox_changed') continue;
    const next = await perform(deps, { held, decision, timer, calls });
    if (next === null) return 'done';
    input = next;
  }
}

function willPause(hold: RunHold, input: ToolCallsSettled): boolean {
  return hold.commands.some((command) => command.type === 'pause') || asked(hold.state, input.results).length > 0 || (input.awaited ?? []).length > 0;
}

/** What is wrong with a run that has come to another store; null where it can go on, `over` where this delivery cannot. */
async function lookedInto(deps: TurnDeps, { hold, claimed }: Held): Promise<'over' | { readonly problem: string } | null> {
  const { other_store } = claimed;
  if (other_store === null) return null;
  const found = await lookInto(deps, hold, { ...claimed, other_store });
  if (found.type !== 'whole') deps.onOtherStore?.(hold.claim.run_id, found);
  if (found.type === 'written_back' || found.type === 'archive_away') return 'over';
  return found.type === 'lost' ? found : null;
}

/** The job is never completed here: if it is still ours, it is the only one that the run has. */
async function leave(deps: TurnDeps, hold: RunHold): Promise<TurnOutcome> {
  if (hold.left === 'drain' || hold.left === 'unclear' || hold.left === 'lease') await handBackSoon(deps, hold);
  return 'left';
}

async function claimedInput(deps: TurnDeps, held: Held, calls: ToolCalls): Promise<TurnClaimed> {
  const { hold, claimed } = held;
  const pinned = hold.state.tools !== null || specOf(hold.state).tools.length === 0;
  const catalogue = pinned ? null : await unlessAborted(deps.tools.catalogue(specOf(hold.state)), hold.signal);
  const changes = pinned ? await toolChanges(deps, hold) : null;
  const from = hold.state.turn_number === 0 && hold.state.history_from === null ? claimed.session_last : null;
  const { unavailable, room_ms, permit } = await admitted(deps, held);
  held.permit = permit;
  return {
    type: 'turn_claimed', ...modelsTold(deps, hold), unavailable, room_ms, worker: deps.worker, history: from === null ? null : { from_run_id: from, messages: await deps.history(from) }, deliveries: claimed.deliveries, poison_limit: deps.limits.poison, nudges: claimed.nudges,
    nudge_limit: deps.limits.nudges, wait_ms: claimed.wait_ms, begun: calls.begunEarlier(),
    judgement: hold.state.candidate === null ? noJudgement : judge(deps, hold.state, answerIn(hold.state, hold.state.candidate)), tools: catalogue?.tools ?? null, tool_problems: catalogue?.problems ?? [], ...(catalogue?.instructions === undefined ? {} : { server_instructions: catalogue.instructions }), tool_changes: changes, commands: [],
  };
}

/** Servers may take their time to start. A run that is cancelled meanwhile, or a worker that stops, waits for none: without tools nothing is pinned. */
async function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T | null> {
  const { promise: aborted, resolve } = Promise.withResolvers<null>();
  const onAbort = (): void => { resolve(null); };
  signal.addEventListener('abort', onAbort, { once: true });
  if (signal.aborted) onAbort();
  return Promise.race([promise, aborted]).finally(() => { signal.removeEventListener('abort', onAbort); });
}

/** Looked for at the beginning of a turn alone: what the model was shown stays until its calls are done. */
async function toolChanges(deps: TurnDeps, { state }: RunHold): Promise<ToolChanges | null> {
  if (state.turn_open || state.tools === null) return null;
  const { kept = {}, gone = [], problems = [], times = {} } = state.tool_news ?? {};
  return await deps.tools.changes?.(specOf(state), state.tools, { kept, gone, problems, times, instructions: state.server_instructions ?? {} }) ?? null;
}

/** A turn that will ask a model, and no other, finds out whom it may ask. */
async function admitted(deps: TurnDeps, held: Held): Promise<Admission> {
  const { state } = held.hold;
  const models = modelsToAsk(deps, held);
  const [first] = models;
  if (first === undefined) return { unavailable: deps.models.unavailable(candidates(state, deps.prices)), room_ms: 0, permit: null };
  return deps.models.admit({ run_id: state.run_id, models, tokens: estimateTokens(state, first.name) + first.max_output_tokens });
}

/** None where the turn waits for something else, or has its reply. */
function modelsToAsk(deps: TurnDeps, { hold, claimed }: Held): readonly ModelSpec[] {
  const { state } = hold;
  const resumed = hold.commands.some((command) => command.type === 'resume');
  const waits = !resumed && (claimed.wait_ms > 0 || (state.status === 'paused' && state.resumes_at === null));
  const answered = state.calls.length > 0 || (state.candidate !== null && !state.turn_open);
  return waits || answered ? [] : candidates(state, deps.prices);
}

interface Performing { readonly held: Held; readonly decision: Decision; readonly timer: TurnTimer; readonly calls: ToolCalls }

/** Carries out the one effect of a committed decision; null when it was the last. */
async function perform(deps: TurnDeps, { held, decision, timer, calls }: Performing): Promise<TurnInput | null> {
  const { hold } = held;
  const { effect } = decision;
  switch (effect.type) {
    case 'call_model': {
      const permit = held.permit?.model === effect.model.name ? held.permit : null;
      if (permit !== null) held.permit = null;
      return asJudged(deps, hold.state, await callModel(deps, { hold, model: effect.model, timer, permit }));
    }
    case 'summarise': return summarise(deps, { hold, effect, timer });
    case 'settle_tool_calls': {
      const putOff = calls.running ? null : await putOffUntilArchived(deps, hold);
      if (putOff === 'committed') return null;
      return putOff === null ? calls.settle() : calls.rest(null);
    }
    case 'hand_over':
    case 'pause':
    case 'end_run': return null;
    default: return assertNever(effect);
  }
}

/** What the reply says, what its calls' schemas say of their arguments, and what hooks and validators say of an answer. */
function asJudged(deps: TurnDeps, state: RunState, input: TurnInput): TurnInput {
  if (input.type !== 'model_replied') return input;
  const reply = interpreted(state, input.reply);
  const calls = reply.calls.map((call) => {
    const tool = state.tools?.find((each) => each.wire_name === call.name || each.name === call.name);
    return tool === undefined || call.problem !== null ? call : { ...call, problem: deps.tools.check(tool, call.input) };
  });
  const judgement = calls.length > 0 || reply.finish === 'length' ? noJudgement : judge(deps, state, answerOf(state, reply));
  return { ...input, reply: { ...reply, calls }, judgement, children: offeredChildren(deps, state, calls), approvals: digestsToApprove(deps.tools, state, calls) };
}

/** The runs that calls of a reply would start, by the ids that these calls will have. */
function offeredChildren(deps: TurnDeps, state: RunState, calls: readonly ReplyCall[]): Readonly<Record<string, OfferedChild>> {
  const spawns = toolUses(state, calls).filter((use) => isSpawn(state, { tool_name: use.tool_name, invalid: use.invalid ?? null }));
  return Object.fromEntries(spawns.flatMap(({ tool_use_id, tool_input }) => {
    const listed = specOf(state).subagents?.some(({ name }) => name === tool_input.agent) === true;
    const child = listed ? deps.children?.offer(state.run_id, { tool_use_id, agent: tool_input.agent }) ?? null : null;
    return child === null ? [] : [[tool_use_id, child]];
  }));
}

function judge(deps: TurnDeps, state: RunState, text: string): Judgement {
  const spec = specOf(state);
  if (spec.stop_hooks.length === 0 && spec.validators.length === 0) return noJudgement;
  const asked = state.transcript.messages.findLast((message) => message.role === 'user');
  const input = asked?.role !== 'user' ? '' : typeof asked.content === 'string' ? asked.content : asked.content.map((part) => part.type === 'text' ? part.text : '').join(' ');
  return deps.judge.judge(spec, { run_id: state.run_id, text, turn_number: state.turn_number, tool_calls: state.tool_calls, input });
}

/** Measures this claim and ends it when the turn or the session has had its time. */
export class TurnTimer {
  readonly #deps: TurnDeps;
  readonly #startMs: number;
  readonly #timer: NodeJS.Timeout;

  constructor(deps: TurnDeps, hold: RunHold) {
    this.#deps = deps;
    this.#startMs = deps.clock.monotonicMs();
    const { limits, active_s, turn_open, turn_number } = hold.state;
    const turnS = turnTimeoutOf(limits, turn_open ? turn_number : turn_number + 1);
    const sessionLeft = Math.max(0, limits.session_timeout_s - active_s);
    const limit = turnS <= sessionLeft ? 'turn_timeout' : 'session_timeout';
    const seconds = Math.min(turnS, sessionLeft);
    this.#timer = setTimeout(() => {
      hold.timedOut = limit;
      hold.abort('time');
    }, Math.min(seconds * 1000, 2 ** 31 - 1));
  }

  /** Seconds of this claim so far. */
  get elapsedS(): number {
    return Math.round(this.#deps.clock.monotonicMs() - this.#startMs) / 1000;
  }

  stop(): void {
    clearTimeout(this.#timer);
  }
}
