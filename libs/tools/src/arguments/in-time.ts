/**
 * Looks at texts that a model or a person has written, by patterns and schemas that come from elsewhere. Together they may take for
 * ever, and this thread has other runs to keep alive.
 *
 * Owns: what has taken too long lately.
 *
 * 1  What has taken too long is not tried again for a moment: of a reply with hundreds of such calls only the first costs time.
 * 2  What is stopped is stopped by the clock, but judged by what the processor has done: on a busy machine, or one that was halted, the clock
 *    runs and the thread does not. That is looked at again, for longer each time, and is nobody's fault.
 */
import { Script, createContext } from 'node:vm';

/** `too_long`: it uses up its time. `kept_waiting`: the thread was kept from it, several times in a row. */
export type Late = 'too_long' | 'kept_waiting';

/** `key` says what else will take as long; `limitMs`: of processor time. `look` may be stopped and begun anew. Throws what it throws. */
export type InTime = <T extends object>(key: string, limitMs: number, look: () => T) => T | Late;

export interface InTimeClocks {
  readonly monotonicMs?: () => number;
  /** Processor time that this thread has used so far, ms. */
  readonly cpuMs?: () => number;
}

const restMs = 1000;
const mostKeys = 500;
/** Each has twice as long as the one before. */
const mostTries = 3;
/** Of its limit, where it had nearly all of the processor: the rest goes to the second thread and to what the system does meanwhile. */
const usedUp = 0.9;
const script = new Script('look()');

export function createInTime({ monotonicMs = () => performance.now(), cpuMs = threadCpuMs }: InTimeClocks = {}): InTime {
  const scope: { look: () => unknown } = { look: () => null };
  const context = createContext(scope);
  const lateAtMs = new Map<string, number>();

  /** Null: stopped. */
  function tried<T extends object>(timeout: number, look: () => T): T | null {
    scope.look = look;
    try {
      // V8 is told by a second thread to stop.
      return script.runInContext(context, { timeout, displayErrors: false }) as T;
    } catch (error) {
      if ((error as { readonly code?: unknown } | null)?.code !== 'ERR_SCRIPT_EXECUTION_TIMEOUT') throw error;
      return null;
    } finally {
      scope.look = () => null;
    }
  }

  return <T extends object>(key: string, limitMs: number, look: () => T): T | Late => {
    if (monotonicMs() - (lateAtMs.get(key) ?? -Infinity) < restMs) return 'too_long';
    lateAtMs.delete(key);
    for (let tries = 0; tries < mostTries; tries++) {
      const before = cpuMs();
      const seen = tried(limitMs * 2 ** tries, look);
      if (seen !== null) return seen;
      if (cpuMs() - before < limitMs * usedUp) continue;
      lateAtMs.set(key, monotonicMs());
      if (lateAtMs.size > mostKeys) lateAtMs.delete(lateAtMs.keys().next().value!);
      return 'too_long';
    }
    return 'kept_waiting';
  };
}

/** Processor time that this thread has used so far, ms. */
export function threadCpuMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}
