/**
 * Which calls of this process are in flight, by model, and whether one more may be. Models that have never answered, or that hang, have some
 * of the slots together; the others are for those that answer (docs/adr/0021).
 *
 * Owns: a lane for each model that was asked: its calls in flight, its allowance, and which runs wait for a place.
 *
 * L1  Nothing here waits: who finds no room is told when to come again.
 * L2  A call that could not be asked about before (a hop, a summary) has a place whether there is room or not: its turn has begun.
 * L3  Where a model may have all slots, nobody is told to wait: the slots are the bound.
 */
import type { ErrorType } from '@treadle/core';
import { allowanceAfter, comesAgainMs, firstAllowance, roomOf, standsFor, type AllowanceOptions } from './allowance.ts';

/** Of one call in flight. */
export interface Place {
  /** The call is over; `null`: nothing is known of it. Returns how many outcomes the breakers are to count it as. */
  leave(came: 'ok' | ErrorType | null): number;
}

/** `allowance`: how many may be in flight now. */
export interface Allowed { readonly model: string; readonly in_flight: number; readonly allowance: number }

interface Lane {
  allowance: number;
  /** No reply so far, or none since the last time-out. */
  silent: boolean;
  inFlight: number;
  /** Of the last reply, or of the first of the calls in flight. */
  quietSinceMs: number;
  /** When the last of those who were sent away comes again. */
  lastMs: number;
  /** By run: when it comes again, the newest last. Never more than slots, since more of them say nothing new. */
  readonly waiting: Map<string, number>;
  /** Time-outs since the last reply while others waited, with those that they stand for. */
  missed: number;
}

export interface AllowancesDeps extends AllowanceOptions {
  readonly nowMs: () => number;
  /** Outcomes that open a breaker: so many time-outs with no reply between them are told at once, however far apart they were. */
  readonly volume: number;
}

export class Allowances {
  readonly #deps: AllowancesDeps;
  readonly #lanes = new Map<string, Lane>();

  constructor(deps: AllowancesDeps) {
    this.#deps = deps;
  }

  /** Ms until the run should come again; 0: there is room now. */
  crowdedMs(model: string, run_id: string): number {
    const lane = this.#of(model);
    if (this.#hasRoom(lane)) return 0;
    const now = this.#deps.nowMs();
    const ms = comesAgainMs({ quiet_ms: now - lane.quietSinceMs, last_ms: lane.lastMs - now });
    lane.lastMs = now + ms;
    this.#waits(lane, run_id, now + ms);
    return ms;
  }

  /** Null: there is no room. */
  take(model: string, run_id: string): Place | null {
    const lane = this.#of(model);
    if (!this.#hasRoom(lane)) return null;
    lane.waiting.delete(run_id);
    return this.#enter(lane);
  }

  /** Whether there is room or not (L2). */
  enter(model: string): Place {
    return this.#enter(this.#of(model));
  }

  all(): readonly Allowed[] {
    return [...this.#lanes].map(([model, lane]) => ({ model, in_flight: lane.inFlight, allowance: this.#room(lane) }));
  }

  #of(model: string): Lane {
    let lane = this.#lanes.get(model);
    if (lane === undefined) {
      lane = { allowance: firstAllowance(this.#deps), silent: true, inFlight: 0, quietSinceMs: 0, lastMs: 0, waiting: new Map(), missed: 0 };
      this.#lanes.set(model, lane);
    }
    return lane;
  }

  #hasRoom(lane: Lane): boolean {
    return lane.allowance >= this.#deps.slots || lane.inFlight < this.#room(lane);
  }

  #room(lane: Lane): number {
    let others = 0;
    for (const other of this.#lanes.values()) if (other.silent && other !== lane) others += other.inFlight;
    return roomOf({ ...lane, others }, this.#deps);
  }

  #enter(lane: Lane): Place {
    if (lane.inFlight === 0) lane.quietSinceMs = this.#deps.nowMs();
    const among = this.#room(lane);
    lane.inFlight += 1;
    let open = true;
    return {
      leave: (came) => {
        if (!open) return 1;
        open = false;
        lane.inFlight -= 1;
        return this.#left(lane, came, among);
      },
    };
  }

  /** `among`: so many were allowed when the call began. */
  #left(lane: Lane, came: 'ok' | ErrorType | null, among: number): number {
    const { slots, volume, share } = this.#deps;
    // With all slots there is nobody who could be held back.
    if (share < 1) lane.allowance = allowanceAfter(lane.allowance, came, slots);
    if (came === 'ok') {
      lane.silent = false;
      lane.quietSinceMs = this.#deps.nowMs();
      // It answers again: who finds no room now is not sent behind all those who found none while it was silent.
      lane.lastMs = 0;
      lane.missed = 0;
    }
    if (came !== 'timeout') return 1;
    lane.silent = true;
    const waiting = this.#waiting(lane);
    if (waiting === 0) return 1;
    const count = standsFor(among, { waiting, slots });
    lane.missed += count;
    return lane.missed >= volume ? Math.max(count, volume) : count;
  }

  /** The oldest makes room for the newest: it may have gone elsewhere long ago. */
  #waits({ waiting }: Lane, run_id: string, againMs: number): void {
    waiting.delete(run_id);
    waiting.set(run_id, againMs);
    const [oldest] = waiting.keys();
    if (waiting.size > this.#deps.slots && oldest !== undefined) waiting.delete(oldest);
  }

  /** A run that has gone elsewhere, or was cancelled, does not come again. */
  #waiting({ waiting }: Lane): number {
    const now = this.#deps.nowMs();
    for (const [run_id, againMs] of waiting) if (againMs + lateMs < now) waiting.delete(run_id);
    return waiting.size;
  }
}

/** As late as a run may be that waits for a slot, too. */
const lateMs = 5000;
