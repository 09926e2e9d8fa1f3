/**
 * Looks at texts that a model or a person has written, by patterns and schemas that come from elsewhere. Together they may take for
 * ever, and this thread has other runs to keep alive.
 *
 * Owns: what has taken too long lately. For a moment it is not tried again: of a reply with hundreds of such calls only the first costs time.
 */
import { Script, createContext } from 'node:vm';

/** `key` says what else will take as long. Null: it has taken too long. Throws what `look` throws. */
export type InTime = <T extends object>(key: string, limitMs: number, look: () => T) => T | null;

const restMs = 1000;
const mostKeys = 500;
const script = new Script('look()');

export function createInTime(monotonicMs: () => number = () => performance.now()): InTime {
  const scope: { look: () => unknown } = { look: () => null };
  const context = createContext(scope);
  const lateAtMs = new Map<string, number>();
  return <T extends object>(key: string, limitMs: number, look: () => T): T | null => {
    if (monotonicMs() - (lateAtMs.get(key) ?? -Infinity) < restMs) return null;
    lateAtMs.delete(key);
    scope.look = look;
    try {
      // V8 is told by a second thread to stop.
      return script.runInContext(context, { timeout: limitMs, displayErrors: false }) as T;
    } catch (error) {
      if ((error as { readonly code?: unknown } | null)?.code !== 'ERR_SCRIPT_EXECUTION_TIMEOUT') throw error;
      lateAtMs.set(key, monotonicMs());
      if (lateAtMs.size > mostKeys) lateAtMs.delete(lateAtMs.keys().next().value!);
      return null;
    } finally {
      scope.look = () => null;
    }
  };
}
