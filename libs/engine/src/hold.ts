/**
 * A run in the hands of one delivery.
 *
 * Owns: the claim, the state as of the last committed event, the commands not applied yet, and the signal that everything
 * performed for the run listens to.
 * States: held → left. Left (fenced, lease lost, draining, or handed on) is final: nothing more is written or performed.
 *
 * E1  Nothing is performed whose reason is not committed: effects run after `write` has answered `committed`.
 * E2  After `fenced` or an unclear answer the signal is aborted and every later write is refused here already.
 * E6  A write that ends the claim's work, or begins a call, has seen every accepted command, or is refused and decided again.
 */
import { awaitedWords, evolve, encodeEvent, stamp, stateChanges, tellings, type Command, type Decision, type EventBody, type LedgerEntry, type RunEvent, type RunState } from '@treadle/core';
import type { Clock, Randomness } from './ports/clock.ts';
import type { Claim, InboxEntry, LedgerWrite, Next, TurnStore } from './ports/run-store.ts';
import { noSpan, type Span } from './ports/tracer.ts';
import type { WarmRuns } from './warm-runs.ts';

/** Why the signal was aborted. `cancel` and `time` are decided about; after the others the delivery just leaves. */
export type AbortReason = 'cancel' | 'time' | LeaveReason;
/** `unclear`: the store did not answer, and nobody knows what happened. */
export type LeaveReason = 'fenced' | 'lease' | 'drain' | 'unclear' | 'done';

export interface HoldDeps {
  readonly store: TurnStore;
  readonly clock: Clock;
  readonly random: Randomness;
  readonly warm: WarmRuns;
  readonly onCommitted?: (events: readonly RunEvent[], after: RunState, before: RunState) => void;
}

export interface Taken {
  readonly claim: Claim;
  readonly state: RunState;
  readonly inbox: readonly InboxEntry[];
  readonly inbox_in: number;
  readonly ledger: readonly LedgerEntry[];
}

export interface Extra {
  readonly ledger: readonly LedgerWrite[];
  /** False for a write that decides nothing, such as beginning a call. */
  readonly decided: boolean;
  /** The write may pass over commands that nobody has decided about. */
  readonly past_commands?: boolean;
}

export type Written = 'committed' | 'fenced' | 'inbox_changed';

/** How long what was asked last counts as known. Well below any lease, well above what an answer takes. */
const freshMs = 1000;

export class RunHold {
  readonly claim: Claim;
  readonly ledger: Map<string, LedgerEntry>;
  /** What the host's clock ended, once it has. */
  timedOut: 'turn_timeout' | 'session_timeout' | null = null;
  /** Whether this claim settles as unknown what an earlier one had begun. */
  tookOver = false;
  /** Whether this delivery is taken out of the count (quarantine.ts). */
  excused = false;
  /** Of this delivery. */
  span: Span = noSpan;
  #state: RunState;
  #inbox: readonly InboxEntry[];
  #applied: number;
  #left: LeaveReason | null = null;
  /** The store's name, for the next commit, where the run has come to another store. */
  #store_id: string | null = null;
  /** When the last write was sent that was answered, by the monotonic clock. */
  #askedMs = -Infinity;
  readonly #abort = new AbortController();
  readonly #deps: HoldDeps;

  constructor(deps: HoldDeps, taken: Taken) {
    this.#deps = deps;
    this.claim = taken.claim;
    this.#state = taken.state;
    this.#applied = taken.inbox_in - taken.inbox.length;
    this.#inbox = taken.inbox;
    this.ledger = new Map(taken.ledger.map((entry) => [entry.tool_use_id, entry]));
  }

  get state(): RunState { return this.#state; }
  get signal(): AbortSignal { return this.#abort.signal; }
  /** Why the delivery is over; null while it goes on. */
  get left(): LeaveReason | null { return this.#left; }
  get commands(): readonly Command[] { return this.#inbox.map((entry) => entry.command); }
  /** What a watch or an append of this claim has to say it knows: everything beyond comes back in the answer. */
  get inboxSeen(): number { return this.#applied; }

  /**
   * Asks whether the claim still holds, where that was not heard of lately: a process that stood still reads an answer from before as if
   * it had just come, and would begin a call that somebody else has taken over. Throws what the store throws.
   */
  async confirm(): Promise<void> {
    // Again where the answer itself was read late; of a store that is always slow no better one can be had.
    for (let asked = 0; asked < 3 && this.#left === null && this.#deps.clock.monotonicMs() - this.#askedMs >= freshMs; asked++) {
      const askedMs = this.#deps.clock.monotonicMs();
      const [reply] = await this.#deps.store.watch([{ claim: this.claim, inbox_seen: this.#applied }]);
      if (reply?.type !== 'held') this.abort('fenced');
      else this.#askedMs = askedMs;
    }
  }

  abort(reason: AbortReason): void {
    if (reason !== 'cancel' && reason !== 'time') this.#left ??= reason;
    this.#abort.abort(reason);
  }

  /**
   * Commands beyond the first `seen`, as an answer of the store brought them. An answer to a question that was asked before the
   * last commit says nothing (the next one will), and fewer commands than are known say nothing new.
   */
  receive(inbox: readonly InboxEntry[], seen: number): void {
    if (seen === this.#applied && inbox.length > this.#inbox.length) this.#inbox = inbox;
    if (this.#inbox.some((entry) => entry.command.type === 'cancel')) this.abort('cancel');
  }

  /** Carries a decision into the store: events, state, ledger and what comes next, at once. */
  async decided(decision: Decision, ledger: readonly LedgerWrite[]): Promise<Written> {
    return this.#write(decision.events, nextOf(decision), { ledger, decided: true });
  }

  /** Writes ledger entries alone. */
  async begin(ledger: readonly LedgerWrite[]): Promise<Written> {
    return this.#write([], { type: 'keep' }, { ledger, decided: false });
  }

  /** Ends the claim and lets the run wait, deciding nothing; with `past_commands` also while commands wait to be decided about. */
  async putOff(delay_ms: number, { past_commands = false } = {}): Promise<Written> {
    return this.#write([], { type: 'wait', delay_ms }, { ledger: [], decided: false, past_commands });
  }

  /** Of the store that the run has come to it is known that it lacks nothing the archive has: the next commit says so. */
  lookedInto(store_id: string): void {
    this.#store_id = store_id;
  }

  /** The claim was ended by another write than a commit. */
  handedOn(): void {
    this.#deps.warm.drop(this.claim.run_id);
    this.#left ??= 'done';
  }

  /** Makes events of bodies without writing them: increments are appended by a batch of many runs. */
  stamped(bodies: readonly EventBody[]): { events: RunEvent[]; after: RunState } {
    const ts = this.#deps.clock.nowMs() / 1000;
    let after = this.#state;
    const events = bodies.map((body) => {
      const event = stamp(after, body, ts, this.claim.epoch);
      after = evolve(after, event);
      return event;
    });
    return { events, after };
  }

  /** The batch has written what `stamped` made. */
  appended(events: readonly RunEvent[], after: RunState): void {
    const before = this.#state;
    this.#state = after;
    this.#deps.onCommitted?.(events, after, before);
  }

  async #write(bodies: readonly EventBody[], next: Next, extra: Extra): Promise<Written> {
    if (this.#left !== null) return 'fenced';
    const { events, after } = this.stamped(bodies);
    const known = this.#inbox;
    const seen = extra.decided || extra.past_commands === true ? this.#applied + known.length : this.#applied;
    // The next turn may start in this very process before the answer is read.
    this.#deps.warm.keep(after, this.claim);
    const askedMs = this.#deps.clock.monotonicMs();
    try {
      const reply = await this.#deps.store.commit({
        claim: this.claim, expected_seq: this.#state.last_seq, commit_id: this.#deps.random.uuid(), status: after.status,
        events: events.map(encodeEvent), last_ts: after.last_ts, changes: stateChanges(this.#state, after), ledger: extra.ledger,
        open_calls: after.calls.filter((call) => !call.settled).map((call) => call.tool_use_id),
        pending: awaitedWords(after.pending),
        tell: tellings(this.#state, after).map((told) => ({ ...told, command_id: `${after.run_id}-${after.last_seq}` })),
        inbox_seen: seen, applies_inbox: extra.decided, took_over: this.tookOver ? this.excused ? 'excused' : 'counted' : 'no', next,
        ...(this.#store_id === null ? {} : { store_id: this.#store_id }),
      });
      if (reply.type === 'committed') this.#askedMs = askedMs;
      else this.#deps.warm.drop(this.claim.run_id);
      if (reply.type === 'fenced') this.abort('fenced');
      if (reply.type === 'inbox_changed') this.#inbox = [...(seen > this.#applied ? known : []), ...reply.inbox];
      if (reply.type === 'committed') this.#committed({ events, after, seen, inbox: reply.inbox, extra, next });
      return reply.type;
    } catch (error) {
      // Nobody knows whether it happened: nothing more is done under this claim.
      this.#deps.warm.drop(this.claim.run_id);
      this.abort('unclear');
      throw error;
    }
  }

  #committed(done: { events: RunEvent[]; after: RunState; seen: number; inbox: readonly InboxEntry[]; extra: Extra; next: Next }): void {
    const before = this.#state;
    this.#state = done.after;
    this.#store_id = null;
    for (const { tool_use_id, entry } of done.extra.ledger) this.ledger.set(tool_use_id, entry);
    this.#applied = done.seen;
    this.#inbox = [];
    this.receive(done.inbox, done.seen);
    if (done.next.type !== 'keep') this.#left = 'done';
    this.#deps.onCommitted?.(done.events, done.after, before);
  }
}

function nextOf({ effect }: Decision): Next {
  switch (effect.type) {
    case 'call_model':
    case 'summarise':
    case 'settle_tool_calls': return { type: 'keep' };
    case 'hand_over': return effect.delay_ms > 0 ? { type: 'wait', delay_ms: effect.delay_ms } : { type: 'job' };
    case 'pause': return effect.delay_ms === undefined ? { type: 'pause' } : { type: 'wait', delay_ms: effect.delay_ms };
    case 'end_run': return { type: 'end' };
  }
}
