/**
 * The time in which one call may run: from `begin` until its time-out, the caller's abort or its end.
 *
 * 1  Before `begin` only the caller's abort ends it; the time-out runs from `begin`.
 * 2  The first cause counts, and stays.
 * 3  After `end` no timer and no listener is left.
 */
import type { CallWindow } from '../kind.ts';

export type Cause = 'timed_out' | 'aborted';

export interface OpenWindow extends CallWindow {
  readonly begun: () => boolean;
  /** Why the signal has aborted; null as long as it has not. */
  readonly cause: () => Cause | null;
  /** Resolves `graceMs` after the signal has aborted; never where it does not. */
  readonly overdue: Promise<void>;
  end(): void;
}

export interface WindowOptions {
  readonly timeoutMs: number;
  readonly graceMs: number;
  /** Asks whether the call may still be sent; aborts the caller's signal where it may not. */
  readonly confirm?: (() => Promise<void>) | undefined;
}

export function openWindow(caller: AbortSignal, { timeoutMs, graceMs, confirm }: WindowOptions): OpenWindow {
  const controller = new AbortController();
  const timers: NodeJS.Timeout[] = [];
  const { promise: overdue, resolve: late } = Promise.withResolvers<void>();
  let begun = false;
  let cause: Cause | null = null;
  const close = (why: Cause): void => {
    if (cause !== null) return;
    cause = why;
    timers.push(setTimeout(late, graceMs));
    controller.abort(new DOMException(why === 'timed_out' ? `timed out after ${timeoutMs} ms` : 'interrupted', why === 'timed_out' ? 'TimeoutError' : 'AbortError'));
  };
  const onAbort = (): void => close('aborted');
  if (caller.aborted) onAbort();
  else caller.addEventListener('abort', onAbort, { once: true });
  return {
    signal: controller.signal,
    begin() {
      if (begun) return;
      begun = true;
      if (cause === null) timers.push(setTimeout(() => close('timed_out'), timeoutMs));
    },
    async confirm() {
      await confirm?.();
      controller.signal.throwIfAborted();
    },
    begun: () => begun,
    cause: () => cause,
    overdue,
    end() {
      timers.forEach(clearTimeout);
      caller.removeEventListener('abort', onAbort);
    },
  };
}
