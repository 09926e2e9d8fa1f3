/**
 * Events and state as text. An event is one line of JSON; its field order is fixed: type, envelope, then its own.
 */
import type { EventBody, RunEvent } from './events.ts';
import { evolve } from './evolve.ts';
import type { KeptMessage } from './message.ts';
import { newestFold, type RunState } from './state.ts';

/** Gives an event its place. The turn's number is the one the event belongs to: a first `turn_start` opens the next. */
export function stamp(state: RunState, body: EventBody, ts: number, epoch: number): RunEvent {
  const opens = body.type === 'turn_start' && body.attempt === 1;
  const { type, ...fields } = body;
  return {
    type, seq: state.last_seq + 1, ts: Math.max(ts, state.last_ts), run_id: state.run_id,
    turn_number: state.turn_number + (opens ? 1 : 0), epoch, ...fields,
  } as RunEvent;
}

/** The state after events that have no place yet: what a decision looks ahead with. */
export function lookAhead(state: RunState, bodies: readonly EventBody[]): RunState {
  return bodies.reduce((now, body) => evolve(now, stamp(now, body, now.last_ts, now.epoch)), state);
}

export function encodeEvent(event: RunEvent): string {
  return JSON.stringify(event);
}

type Fields = Readonly<Record<string, unknown>>;

/**
 * What makes an event of an older form one of the next. A log is never rewritten: what was written years ago is read through all the
 * lifts that came since. An event says its form as `v`; without it, it is the first.
 */
export interface Lift {
  readonly type: RunEvent['type'];
  readonly from: number;
  readonly lift: (event: Fields) => Fields;
}

/** None yet: every event is still in its first form. */
const lifts: readonly Lift[] = [];

/** Throws `SyntaxError` on text that is not JSON. */
export function decodeEvent(line: string): RunEvent {
  return decodeWith(lifts, line);
}

export function decodeWith(known: readonly Lift[], line: string): RunEvent {
  let event = JSON.parse(line) as Fields;
  for (;;) {
    const { type, v = 1 } = event;
    const next = known.find((lift) => lift.type === type && lift.from === v);
    if (next === undefined) return event as unknown as RunEvent;
    event = { ...next.lift(event), v: next.from + 1 };
  }
}

export type StateFields = Omit<RunState, 'last_seq' | 'last_ts' | 'epoch' | 'transcript'>;

/** How two states differ, as the store writes it. */
export interface StateChanges {
  /** Changed top-level fields as JSON. */
  readonly fields: Readonly<Record<string, string>>;
  readonly generation: number;
  /** Whether the messages are a whole new generation or are appended to the stored one. */
  readonly replaces: boolean;
  readonly messages: readonly string[];
}

const apart = new Set(['last_seq', 'last_ts', 'epoch', 'transcript']);

export function stateChanges(before: RunState, after: RunState): StateChanges {
  const fields: Record<string, string> = {};
  for (const [key, value] of Object.entries(after)) {
    if (!apart.has(key) && before[key as keyof RunState] !== value) fields[key] = JSON.stringify(value);
  }
  const old = before.transcript;
  const now = after.transcript;
  const replaces = old.generation !== now.generation;
  const fresh = replaces ? now.messages : now.messages.slice(old.messages.length);
  return { fields, generation: now.generation, replaces, messages: fresh.map((message) => JSON.stringify(message)) };
}

/** Whether a newer version has written the run, in a way that this one cannot go on with. Fields that are only new to it are kept as they are. */
export function isNewer(stored: { readonly fields: Readonly<Record<string, string>> }): boolean {
  return Number(stored.fields['fold_version'] ?? 1) > newestFold;
}

/** The state that was stored. Fields that a newer fold added take their initial value from `initial`. */
export function restoreState(initial: RunState, stored: {
  fields: Readonly<Record<string, string>>; last_seq: number; last_ts: number; epoch: number; generation: number; messages: readonly string[];
}): RunState {
  const fields = Object.fromEntries(Object.entries(stored.fields).map(([key, value]) => [key, JSON.parse(value) as unknown])) as Partial<StateFields>;
  const messages = stored.messages.map((message) => JSON.parse(message) as KeptMessage);
  return {
    ...initial, ...fields, last_seq: stored.last_seq, last_ts: stored.last_ts, epoch: stored.epoch,
    transcript: { generation: stored.generation, messages },
  };
}
