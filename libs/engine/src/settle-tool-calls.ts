/**
 * Carries out the open calls of a turn, group by group, so that each is begun at most as often as its effect class allows.
 *
 * Owns: the calls running now under this claim. One group runs at a time (`planGroups`); the next begins when every call of
 * the one before has its result.
 * A call is begun in the ledger before it runs: `read` and `idempotent` ones in a commit that is due anyway, `once` calls in
 * one of their own, or together with the results of the group before.
 * Whatever happens to a running call (time-out, abort, a server that died), it gets one result that says what is known.
 */
import {
  awaitsAnswer, childOf, idempotencyKey, ledgerVerdict, planGroups, runnableCalls, type ChildEnded, type Decision, type LedgerEntry, type OpenCall, type SettledCall,
  type ToolCallsSettled, type ToolDefinition, type TurnInput,
} from '@treadle/core';
import { notApproved } from './approvals.ts';
import type { ChildStart } from './child-runs.ts';
import type { TurnDeps, TurnTimer } from './execute-turn.ts';
import { BlobKeeper } from './keep-blobs.ts';
import type { RunHold } from './hold.ts';
import { StoreAway, type LedgerWrite } from './ports/run-store.ts';
import type { ToolRunResult } from './ports/tool-runner.ts';
import { traced, type Span, type SpanEnd } from './ports/tracer.ts';

/** What has come of a call: its result; or a run was started, which is under way (both null) or has ended. */
interface Came { readonly tool_use_id: string; readonly result: SettledCall | null; readonly end: ChildEnded | null }

/** How long a finished call waits for its siblings before its result is written alone, ms. */
const gatherMs = 25;

const reports = {
  in_doubt: 'The outcome of this call is unknown: it was started before an interruption and may or may not have happened. '
    + 'It was not repeated. Check before you try again.',
  unknown: 'It may or may not have happened.',
  cancelled: 'This call was cancelled.',
} as const;

export class ToolCalls {
  readonly #deps: TurnDeps;
  readonly #hold: RunHold;
  readonly #timer: TurnTimer;
  readonly #running = new Map<string, Promise<Came>>();
  readonly #blobs: BlobKeeper;

  constructor(deps: TurnDeps, hold: RunHold, timer: TurnTimer) {
    this.#deps = deps;
    this.#hold = hold;
    this.#timer = timer;
    this.#blobs = new BlobKeeper(deps.archive, hold.claim.run_id);
  }

  /** What a closing result of each call says that an earlier claim had begun. */
  begunEarlier(): SettledCall[] {
    const before = (call: OpenCall): boolean => (this.#hold.ledger.get(call.tool_use_id)?.started_epoch ?? this.#hold.claim.epoch) < this.#hold.claim.epoch;
    // A run that was started is no lost call: it is there.
    return this.#open().filter((call) => before(call) && childOf(this.#hold.state, call.tool_use_id) === undefined).map((call) => this.#lost(call));
  }

  /** Whether calls are under way: a pause waits for them, since it would leave them alone. */
  get running(): boolean {
    return this.#running.size > 0;
  }

  /** The results of all that is running, beside those that have come. */
  async rest(come: ToolCallsSettled | null): Promise<ToolCallsSettled> {
    const rest: Came[] = [];
    while (this.#running.size > 0) rest.push(...await this.#gather());
    const input = this.#settled(rest);
    if (come === null) return input;
    return {
      ...input, results: [...come.results, ...input.results], awaited: [...come.awaited ?? [], ...input.awaited ?? []],
      child_ends: [...come.child_ends ?? [], ...input.child_ends ?? []],
    };
  }

  /**
   * What a decision's commit writes to the ledger: the results it settles, and the begins of the calls that its effect runs
   * next, where these need no commit of their own.
   */
  ledgerFor(decision: Decision, input: TurnInput): LedgerWrite[] {
    const settles = decision.events.flatMap((event) => event.type === 'tool_result' ? this.#settleEntry(event.tool_use_id, event.outcome ?? null) : []);
    // What is archived first is begun in a commit of its own, afterwards.
    if (decision.effect.type !== 'settle_tool_calls' || this.#deps.archiveFirst !== undefined || this.#stillRunning(decision)) return settles;
    const { after } = this.#hold.stamped(decision.events);
    const group = planGroups(runnableCalls(after), after.tools ?? [])[0] ?? [];
    const merge = input.type === 'tool_calls_settled';
    return [...settles, ...this.#begins(group).filter((write) => merge || write.entry.effect !== 'once')];
  }

  /** Runs until at least one call of the current group has its result. */
  async settle(): Promise<TurnInput> {
    if (this.#running.size === 0) {
      const group = planGroups(runnableCalls(this.#hold.state), this.#hold.state.tools ?? [])[0] ?? [];
      const own = this.#begins(group);
      if (own.length > 0 && !this.#hold.signal.aborted && (await this.#hold.begin(own)) !== 'committed') return this.#settled([]);
      await this.#hold.confirm();
      // What an earlier claim had begun is not simply `not started`, even if nothing is begun any more.
      if (this.#hold.signal.aborted) return this.#settled(this.begunEarlier().map(came));
      for (const call of group) this.#running.set(call.tool_use_id, this.#run(call));
    }
    return this.#settled(await this.#gather());
  }

  #settled(all: readonly Came[]): ToolCallsSettled {
    const results = all.flatMap(({ result }) => result ?? []);
    const awaited = all.flatMap(({ tool_use_id, result, end }) => result === null && end === null ? [tool_use_id] : []);
    const child_ends = all.flatMap(({ end }) => end ?? []);
    return { type: 'tool_calls_settled', results, awaited, child_ends, elapsed_s: this.#timer.elapsedS, timed_out: this.#hold.timedOut, commands: [] };
  }

  #open(): OpenCall[] {
    return this.#hold.state.calls.filter((call) => !call.settled);
  }

  #stillRunning(decision: Decision): boolean {
    const settled = new Set(decision.events.flatMap((event) => event.type === 'tool_result' ? [event.tool_use_id] : []));
    return [...this.#running.keys()].some((id) => !settled.has(id));
  }

  /** Ledger entries for calls of a group that may run and are not begun under this claim. */
  #begins(group: readonly OpenCall[]): LedgerWrite[] {
    return group.flatMap((call) => {
      const tool = this.#tool(call);
      if (tool === undefined) return [];
      const verdict = ledgerVerdict(tool.effect, this.#hold.ledger.get(call.tool_use_id), this.#hold.claim.epoch);
      if (verdict === 'go' || verdict === 'in_doubt') return [];
      const entry: LedgerEntry = {
        tool_use_id: call.tool_use_id, tool_name: call.tool_name, status: 'started', started_epoch: this.#hold.claim.epoch, settled_epoch: null,
        idempotency_key: idempotencyKey(this.#hold.claim.run_id, call.tool_use_id), effect: tool.effect, outcome: null,
      };
      return [{ tool_use_id: call.tool_use_id, entry }];
    });
  }

  #settleEntry(tool_use_id: string, outcome: string | null): LedgerWrite[] {
    const entry = this.#hold.ledger.get(tool_use_id);
    if (entry === undefined) return [];
    return [{ tool_use_id, entry: { ...entry, status: 'settled', settled_epoch: this.#hold.claim.epoch, outcome } }];
  }

  #tool(call: OpenCall): ToolDefinition | undefined {
    return call.invalid === null ? this.#hold.state.tools?.find((tool) => tool.name === call.tool_name) : undefined;
  }

  /** One result, whatever happens: a runner that throws is a bug of ours, and the model still gets its answer. */
  async #run(call: OpenCall): Promise<Came> {
    try {
      const tool = this.#tool(call);
      if (tool === undefined) return came({ tool_use_id: call.tool_use_id, content: call.invalid ?? `There is no tool named ${call.tool_name}.`, is_error: true, duration: 0 });
      const spawns = tool.builtin === 'spawn_agent';
      if (!spawns && ledgerVerdict(tool.effect, this.#hold.ledger.get(call.tool_use_id), this.#hold.claim.epoch) === 'in_doubt') return came(this.#lost(call));
      const other = notApproved(tool, call);
      if (other !== null) return came({ tool_use_id: call.tool_use_id, content: other, is_error: true, duration: 0, outcome: 'not_started' });
      const span = this.#hold.span.begin({ type: 'tool_call', state: this.#hold.state, tool, call });
      return await traced(span, async () => spawns ? this.#spawn(call, span) : came(await this.#carryOut(call, tool, span)), tracedEnd);
    } catch (error) {
      // Whether a sub-agent was started is found out by the next claim.
      if (error instanceof StoreAway) this.#hold.abort('unclear');
      const detail = error instanceof Error ? error.message : String(error);
      return came({ tool_use_id: call.tool_use_id, content: `The host could not run this call: ${detail}. ${reports.unknown}`, is_error: true, duration: 0, outcome: 'unknown' });
    }
  }

  /** The call's result is the started run's id, or what that run answers when it has ended. */
  async #spawn(call: OpenCall, span: Span): Promise<Came> {
    const { tool_use_id } = call;
    const { state, claim, signal } = this.#hold;
    const cancelled = came({ tool_use_id, content: reports.cancelled, is_error: true, duration: 0, outcome: 'cancelled' });
    if (signal.aborted) return cancelled;
    const started: ChildStart = await this.#deps.children?.start(state, claim, { call, traceparent: span.traceparent }) ?? { type: 'refused', why: 'This worker starts none.' };
    if (started.type === 'fenced') return cancelled;
    if (started.type === 'refused') return came({ tool_use_id, content: `No sub-agent was started. ${started.why}`, is_error: true, duration: 0 });
    const id = { tool_use_id, content: childOf(state, tool_use_id)?.child_run_id ?? '', is_error: false, duration: 0 };
    return { tool_use_id, result: awaitsAnswer(call) ? null : id, end: started.type === 'ended' ? started.end : null };
  }

  async #carryOut(call: OpenCall, tool: ToolDefinition, span: Span): Promise<SettledCall> {
    const { tool_use_id } = call;
    const entry = this.#hold.ledger.get(tool_use_id);
    if (ledgerVerdict(tool.effect, entry, this.#hold.claim.epoch) !== 'go' || entry === undefined) throw new Error(`${tool_use_id} is run without having been begun`);
    const started = this.#deps.clock.monotonicMs();
    const result = await this.#deps.tools.run({
      run_id: this.#hold.claim.run_id, tool, input: call.tool_input, tool_use_id, idempotency_key: entry.idempotency_key,
      epoch: this.#hold.claim.epoch, signal: this.#hold.signal, confirm: () => this.#hold.confirm(), onCarried: (carrier) => { span.carriedBy(carrier); },
    });
    const duration = Math.round(this.#deps.clock.monotonicMs() - started) / 1000;
    const unknown = !result.settled && tool.effect === 'once';
    const content = unknown ? `${result.content}\n${reports.unknown}` : result.content;
    const kept = await this.#blobs.observation({ ...result, content }, { maxBytes: this.#hold.state.limits.max_observation_bytes, named: this.#readsBlobs() });
    return { tool_use_id, is_error: result.is_error, duration, ...(unknown ? { outcome: 'unknown' } : this.#cancelled(result)), ...kept };
  }

  /** Whoever can read blobs is told the names of those that stand for what was cut. */
  #readsBlobs(): boolean {
    return this.#hold.state.tools?.some((tool) => tool.name === 'read_blob') ?? false;
  }

  #cancelled({ settled, never_begun }: ToolRunResult): Pick<SettledCall, 'outcome'> {
    if (never_begun === true) return { outcome: 'not_started' };
    return !settled && this.#hold.signal.aborted ? { outcome: 'cancelled' } : {};
  }

  /** A call that a claim before this one began and did not settle. */
  #lost(call: OpenCall): SettledCall {
    const once = this.#tool(call)?.effect === 'once';
    return {
      tool_use_id: call.tool_use_id, content: once ? reports.in_doubt : reports.cancelled, is_error: true, duration: 0,
      outcome: once ? 'unknown' : 'cancelled',
    };
  }

  /** The results of all calls that are done when the first is, or shortly after; of all running ones once the signal is aborted. */
  async #gather(): Promise<Came[]> {
    if (this.#running.size === 0) return [];
    const done = new Map<string, Came>();
    const each = [...this.#running].map(async ([id, result]) => { done.set(id, await result); });
    await Promise.race(each);
    const all = Promise.all(each);
    if (this.#hold.signal.aborted) await all;
    else await Promise.race([all, pause(gatherMs)]);
    // Ended meanwhile: every call that was begun must tell how it came out.
    if (this.#hold.signal.aborted) await all;
    for (const id of done.keys()) this.#running.delete(id);
    return [...done.values()];
  }
}

/** A run that was started has its own spans. */
function tracedEnd({ result }: Came): SpanEnd {
  return { type: 'tool_call', result: result ?? { content: '', is_error: false } };
}

function came(result: SettledCall): Came {
  return { tool_use_id: result.tool_use_id, result, end: null };
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => { setTimeout(resolve, ms); });
}
