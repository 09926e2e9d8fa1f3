/**
 * A store that is away is asked seldom, by whomever: archiver, blobs and readers of one process share one gate.
 *
 * States: open (calls pass) → shut (calls fail at once, without a request) → trying (one call passes, the others fail at once) →
 * open or shut again.
 * 1  Shut after two calls in a row that ended as `unavailable`; the pause doubles from one second to ten, with jitter, so that
 *    a fleet does not come back at once.
 * 2  One call that the store answers, whatever it says, opens the gate again.
 */
import { ObjectsFailed, type ObjectStore } from './objects.ts';

export interface GateOptions {
  /** Monotonic, ms. */
  readonly nowMs?: () => number;
  /** 0 to 1. */
  readonly jitter?: () => number;
}

const failuresThatShut = 2;
const shortestPauseMs = 1000;
const longestPauseMs = 10_000;

export function gated(objects: ObjectStore, options: GateOptions = {}): ObjectStore {
  const nowMs = options.nowMs ?? (() => performance.now());
  const jitter = options.jitter ?? Math.random;
  let failures = 0;
  let pauseMs = shortestPauseMs;
  let shutUntilMs = -Infinity;
  let trying = false;

  const isShut = (): boolean => failures >= failuresThatShut;

  function enter(operation: string): boolean {
    if (!isShut()) return false;
    if (trying || nowMs() < shutUntilMs) throw new ObjectsFailed('unavailable', `${operation}: it was away a moment ago, and is asked again soon`);
    trying = true;
    return true;
  }

  function answered(): void {
    failures = 0;
    pauseMs = shortestPauseMs;
  }

  function failed(error: unknown, tried: boolean): void {
    if (!(error instanceof ObjectsFailed && error.kind === 'unavailable')) return answered();
    failures++;
    // Calls that were under way when the gate shut say nothing new.
    if (!isShut() || (!tried && nowMs() < shutUntilMs)) return;
    shutUntilMs = nowMs() + pauseMs * (1 + jitter() / 2);
    pauseMs = Math.min(pauseMs * 2, longestPauseMs);
  }

  async function pass<T>(operation: string, act: () => Promise<T>): Promise<T> {
    const tried = enter(operation);
    try {
      const answer = await act();
      answered();
      return answer;
    } catch (error) {
      failed(error, tried);
      throw error;
    } finally {
      if (tried) trying = false;
    }
  }

  return {
    get capabilities() { return objects.capabilities; },
    put: (key, bytes, mode) => pass(`PUT ${key}`, () => objects.put(key, bytes, mode)),
    get: (key, maxBytes) => pass(`GET ${key}`, () => objects.get(key, maxBytes)),
    delete: (key) => pass(`DELETE ${key}`, () => objects.delete(key)),
    async *list(prefix, afterKey) {
      const keys = objects.list(prefix, afterKey)[Symbol.asyncIterator]();
      for (let next = await pass(`LIST ${prefix}`, () => keys.next()); next.done !== true; next = await keys.next()) yield next.value;
    },
    close: () => { objects.close(); },
  };
}
