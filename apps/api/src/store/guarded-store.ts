/**
 * The run store as a request may use it: each call answers or fails in time, and says what failed.
 *
 * 1. No call takes longer than `callTimeoutMs`, nor than what is left of the request's budget.
 * 2. A call that is given up after it was made counts as sent; one for which no time is left is not made.
 */
import type { Archive, KeyDirectory, ModelFleet, RunDirectory, ScheduleDirectory } from '@treadle/engine';
import { ArchiveUnavailable, StoreUnavailable, storeUnavailable } from './unavailable.ts';

export interface GuardOptions {
  /** Of one call. */
  readonly callTimeoutMs: number;
  /** Of all calls together, from now on; unlimited where it is left out. */
  readonly budgetMs?: number;
}

/** A call that throws `StoreUnavailable` for whatever means that the store is away; other errors as they are. */
type Bounded = <T>(call: () => Promise<T>) => Promise<T>;

function boundedBy(options: GuardOptions): Bounded {
  const endMs = options.budgetMs === undefined ? Number.POSITIVE_INFINITY : performance.now() + options.budgetMs;

  return async (call) => {
    const leftMs = Math.min(options.callTimeoutMs, endMs - performance.now());
    if (leftMs <= 0) throw new StoreUnavailable('no time was left to ask the store', { sent: false });
    try {
      return await within(call(), leftMs, () => new StoreUnavailable('the store did not answer in time', { sent: true }));
    } catch (error) {
      throw storeUnavailable(error) ?? error;
    }
  };
}

export function guardedStore(store: RunDirectory, options: GuardOptions): RunDirectory {
  const bounded = boundedBy(options);
  return {
    create: (run) => bounded(() => store.create(run)),
    command: (command) => bounded(() => store.command(command)),
    read: (run_id, without) => bounded(() => store.read(run_id, without)),
    events: (run_id, after_seq, limit) => bounded(() => store.events(run_id, after_seq, limit)),
    ledger: (run_id) => bounded(() => store.ledger(run_id)),
    moves: (run_id) => bounded(() => store.moves(run_id)),
    list: (query) => bounded(() => store.list(query)),
    createSession: (session) => bounded(() => store.createSession(session)),
    session: (session_id) => bounded(() => store.session(session_id)),
    listSessions: (query) => bounded(() => store.listSessions(query)),
    reserveKey: (key) => bounded(() => store.reserveKey(key)),
    remove: (run) => bounded(() => store.remove(run)),
    removed: (run_id) => bounded(() => store.removed(run_id)),
    usage: (query) => bounded(() => store.usage(query)),
    deliveries: (query) => bounded(() => store.deliveries(query)),
    delivery: (run_id, tenant) => bounded(() => store.delivery(run_id, tenant)),
    redeliver: (asked) => bounded(() => store.redeliver(asked)),
    now: () => bounded(() => store.now()),
  };
}

/** Schedules lie in the same store. */
export function guardedSchedules(schedules: ScheduleDirectory, options: GuardOptions): ScheduleDirectory {
  const bounded = boundedBy(options);
  return {
    create: (schedule) => bounded(() => schedules.create(schedule)),
    schedule: (id) => bounded(() => schedules.schedule(id)),
    change: (change) => bounded(() => schedules.change(change)),
    remove: (schedule) => bounded(() => schedules.remove(schedule)),
    list: (query) => bounded(() => schedules.list(query)),
  };
}

/** Keys that were issued lie in the same store. */
export function guardedKeys(keys: KeyDirectory, options: GuardOptions): KeyDirectory {
  const bounded = boundedBy(options);
  return {
    issue: (key) => bounded(() => keys.issue(key)),
    find: (key_sha256) => bounded(() => keys.find(key_sha256)),
    get: (id) => bounded(() => keys.get(id)),
    list: (query) => bounded(() => keys.list(query)),
    revoke: (key) => bounded(() => keys.revoke(key)),
  };
}

type OpenedByPeople = Pick<ModelFleet, 'exchange' | 'open' | 'close' | 'unbench'>;

/** The fleet lies in the same store. */
export function guardedFleet(fleet: OpenedByPeople, options: GuardOptions): OpenedByPeople {
  const bounded = boundedBy(options);
  return {
    exchange: (seen) => bounded(() => fleet.exchange(seen)),
    open: (breaker) => bounded(() => fleet.open(breaker)),
    close: (breaker_id, probe_token) => bounded(() => fleet.close(breaker_id, probe_token)),
    unbench: (target) => bounded(() => fleet.unbench(target)),
  };
}

export type ReadableArchive = Pick<Archive, 'events' | 'getRun' | 'removal'>;

/** Throws `ArchiveUnavailable` for whatever goes wrong. */
export function guardedArchive(archive: ReadableArchive, timeoutMs: number): ReadableArchive {
  async function bounded<T>(call: () => Promise<T>): Promise<T> {
    try {
      return await within(call(), timeoutMs, () => new ArchiveUnavailable('the archive did not answer in time'));
    } catch (error) {
      throw error instanceof ArchiveUnavailable ? error : new ArchiveUnavailable('the archive cannot be read', { cause: error });
    }
  }
  return {
    events: (run_id, after_seq, limit) => bounded(() => archive.events(run_id, after_seq, limit)),
    getRun: (run_id) => bounded(() => archive.getRun(run_id)),
    removal: (run_id) => bounded(() => archive.removal(run_id)),
  };
}

/** `promise`, or the error of `tooLate` after `timeoutMs`. What the promise comes to afterwards is nobody's business. */
export async function within<T>(promise: Promise<T>, timeoutMs: number, tooLate: () => Error): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => { timer = setTimeout(() => reject(tooLate()), timeoutMs); });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
    promise.catch(() => undefined);
  }
}
