/**
 * The watchdogs of one call, and the caller's abort: whatever ends the call early aborts one signal, and this remembers which.
 *
 * Owns: two timers and one listener on the caller's signal.
 * States: waiting (first token) → flowing (idle) → over (`verdict` set, or `close`).
 *
 * 1  The first cause wins and never changes.
 * 2  After `close` no timer runs and no listener is left: callers' signals live as long as a worker.
 */

export type Verdict =
  | { readonly type: 'aborted' }
  | { readonly type: 'timeout'; readonly limit: 'first_token' | 'idle' | 'total'; readonly after_ms: number };

/** Milliseconds. */
export interface WatchLimits {
  readonly first_token_timeout_ms: number;
  readonly idle_timeout_ms: number;
  readonly total_timeout_ms: number;
}

export interface Watch {
  /** Aborts on the caller's abort, when a watchdog fires, and on `close`. */
  readonly signal: AbortSignal;
  /** A sign of life: from the first one on, the idle limit counts. */
  readonly progress: () => void;
  readonly verdict: () => Verdict | null;
  readonly close: () => void;
}

/** Longer delays make Node's timers fire at once. */
const longestTimerMs = 2 ** 31 - 1;

/** One for all: making one costs a stack trace, and every call closes. */
const callIsOver = new DOMException('The call is over', 'AbortError');

export function createWatch(limits: WatchLimits, caller: AbortSignal): Watch {
  const controller = new AbortController();
  let verdict: Verdict | null = null;
  let flowing = false;
  let closed = false;

  const end = (cause: Verdict): void => {
    if (verdict !== null || closed) return;
    verdict = cause;
    controller.abort();
  };
  const timer = (limit: 'first_token' | 'idle' | 'total', after_ms: number): NodeJS.Timeout =>
    setTimeout(() => end({ type: 'timeout', limit, after_ms }), Math.min(after_ms, longestTimerMs));
  const onAbort = (): void => end({ type: 'aborted' });

  if (caller.aborted) onAbort();
  else caller.addEventListener('abort', onAbort, { once: true });
  const total = timer('total', limits.total_timeout_ms);
  let silence = timer('first_token', limits.first_token_timeout_ms);

  return {
    signal: controller.signal,
    verdict: () => verdict,
    progress: () => {
      if (closed) return;
      if (flowing) {
        silence.refresh();
        return;
      }
      flowing = true;
      clearTimeout(silence);
      silence = timer('idle', limits.idle_timeout_ms);
    },
    close: () => {
      closed = true;
      clearTimeout(total);
      clearTimeout(silence);
      caller.removeEventListener('abort', onAbort);
      controller.abort(callIsOver);
    },
  };
}

/** For a failure's detail. */
export function verdictText(verdict: Verdict): string {
  if (verdict.type === 'aborted') return 'the call was aborted';
  const seconds = `${verdict.after_ms / 1000} s`;
  switch (verdict.limit) {
    case 'first_token': return `first_token_timeout: nothing came from the model within ${seconds}`;
    case 'idle': return `idle_timeout: the model fell silent for ${seconds} in the middle of its reply`;
    case 'total': return `total_timeout: the reply was not whole after ${seconds}`;
  }
}
