/**
 * Runs somebody else's code for a short time and no longer, in this thread.
 *
 * V8 is told by a second thread to stop, which ends endless loops and backtracking regular expressions alike; neither can be
 * caught by the code that is stopped. It does not end a native call that blocks (a synchronous child process, for example),
 * and it holds for what runs now: what a function leaves to a promise or a timer runs later, without it.
 */
import { createContext, Script } from 'node:vm';

export type Attempt<T> =
  | { readonly type: 'returned'; readonly value: T }
  /** `problem`: what was thrown, in a few words. */
  | { readonly type: 'threw'; readonly problem: string }
  | { readonly type: 'late' };

export interface TimeLimit {
  /** Never throws. Whatever looks at values from outside (getters may loop, too) belongs inside `attempt`. */
  within<T>(attempt: () => T): Attempt<T>;
}

/** `limitMs`: a whole number from 1. */
export function createTimeLimit(limitMs: number): TimeLimit {
  const script = new Script('run()');
  const scope: { run: () => void } = { run: () => undefined };
  const context = createContext(scope);
  return {
    within<T>(attempt: () => T): Attempt<T> {
      let ended: Attempt<T> | null = null;
      scope.run = () => { ended = attempted(attempt); };
      try {
        script.runInContext(context, { timeout: limitMs, displayErrors: false });
      } catch {
        // Only the time limit, or a stack that is full, gets past `attempted`; `ended` tells.
      }
      return ended ?? { type: 'late' };
    },
  };
}

function attempted<T>(attempt: () => T): Attempt<T> {
  try {
    return { type: 'returned', value: attempt() };
  } catch (error) {
    return { type: 'threw', problem: inWords(error) };
  }
}

const maxWords = 300;

/** Anything can be thrown: null, or an error whose message cannot be read. */
function inWords(error: unknown): string {
  try {
    const text = error instanceof Error ? error.message : String(error);
    return text.slice(0, maxWords).toWellFormed();
  } catch {
    return 'something that cannot be shown';
  }
}
