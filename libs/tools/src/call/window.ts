/**
 * The time in which one call may run: from `begin` until its time-out, the caller's abort or its end.
 *
 * 1  Before `begin` only the caller's abort ends it; the time-out runs from `begin`.
 * 2  Progress starts the time-out anew; the time in all, from `begin`, is never passed.
 * 3  The first cause counts, and stays.
 * 4  After `end` no timer and no listener is left, and none comes: a tool that was left behind may go on telling of its progress.
 */
import type { CallWindow } from '../kind.ts';

export type Cause = 'timed_out' | 'aborted';

export interface OpenWindow extends CallWindow {
  readonly begun: () => boolean;
  /** Why the signal has aborted; null as long as it has not. */
  readonly cause: () => Cause | null;
  /** In words, which time was over. */
  readonly timeWords: () => string;
  /** Resolves `graceMs` after the signal has aborted; never where it does not. */
  readonly overdue: Promise<void>;
  end(): void;
}

export interface WindowOptions {
  readonly timeoutMs: number;
  /** From `begin` on, whatever progress there is. */
  readonly maxTotalMs: number;
  readonly graceMs: number;
  /** Asks whether the call may still be sent; aborts the caller's signal where it may not. */
  readonly confirm?: (() => Promise<void>) | undefined;
}

export function openWindow(caller: AbortSignal, { timeoutMs, maxTotalMs, graceMs, confirm }: WindowOptions): OpenWindow {
  const controller = new AbortController();
  let grace: NodeJS.Timeout | undefined;
  let limit: NodeJS.Timeout | undefined;
  let begunAt = 0;
  let words = `timed out after ${timeoutMs} ms`;
  const { promise: overdue, resolve: late } = Promise.withResolvers<void>();
  let begun = false;
  let ended = false;
  let cause: Cause | null = null;
  const close = (why: Cause): void => {
    if (cause !== null) return;
    cause = why;
    clearTimeout(limit);
    grace = setTimeout(late, graceMs);
    controller.abort(new DOMException(why === 'timed_out' ? words : 'interrupted', why === 'timed_out' ? 'TimeoutError' : 'AbortError'));
  };
  const onAbort = (): void => close('aborted');
  if (caller.aborted) onAbort();
  else caller.addEventListener('abort', onAbort, { once: true });
  return {
    signal: controller.signal,
    begin() {
      if (begun || ended) return;
      begun = true;
      begunAt = performance.now();
      if (cause === null) limit = setTimeout(() => close('timed_out'), Math.min(timeoutMs, maxTotalMs));
    },
    async confirm() {
      await confirm?.();
      controller.signal.throwIfAborted();
    },
    progress() {
      if (!begun || ended || cause !== null) return;
      clearTimeout(limit);
      const left = begunAt + maxTotalMs - performance.now();
      words = left < timeoutMs ? `timed out after ${maxTotalMs} ms in all` : `timed out: there was no progress for ${timeoutMs} ms`;
      limit = setTimeout(() => close('timed_out'), Math.max(0, Math.min(timeoutMs, left)));
    },
    timeWords: () => words,
    begun: () => begun,
    cause: () => cause,
    overdue,
    end() {
      ended = true;
      clearTimeout(limit);
      clearTimeout(grace);
      caller.removeEventListener('abort', onAbort);
    },
  };
}
