import { getEventListeners } from 'node:events';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { createWatch } from './watch.ts';

const limits = { first_token_timeout_ms: 100, idle_timeout_ms: 30, total_timeout_ms: 1000 };

beforeEach(() => { vi.useFakeTimers(); });
afterEach(() => { vi.useRealTimers(); });

describe('a watch', () => {
  it('fires when the first sign of life is late, and says which limit it was', () => {
    const watch = createWatch(limits, new AbortController().signal);
    vi.advanceTimersByTime(99);
    expect(watch.verdict()).toBeNull();
    vi.advanceTimersByTime(1);
    expect(watch.verdict()).toEqual({ type: 'timeout', limit: 'first_token', after_ms: 100 });
    expect(watch.signal.aborted).toBe(true);
    watch.close();
  });

  it('counts silence anew from each sign of life', () => {
    const watch = createWatch(limits, new AbortController().signal);
    for (let sign = 0; sign < 10; sign++) {
      watch.progress();
      vi.advanceTimersByTime(29);
    }
    expect(watch.verdict()).toBeNull();
    vi.advanceTimersByTime(1);
    expect(watch.verdict()).toMatchObject({ limit: 'idle' });
    watch.close();
  });

  it('ends a reply that is always alive and never whole', () => {
    const watch = createWatch(limits, new AbortController().signal);
    for (let at = 0; at < 1000; at += 20) {
      watch.progress();
      vi.advanceTimersByTime(20);
    }
    expect(watch.verdict()).toMatchObject({ limit: 'total' });
    watch.close();
  });

  it('keeps to the first cause', () => {
    const caller = new AbortController();
    const watch = createWatch(limits, caller.signal);
    caller.abort();
    vi.advanceTimersByTime(2000);
    expect(watch.verdict()).toEqual({ type: 'aborted' });
    watch.close();
  });

  it('takes a limit that timers cannot count as a very long one', () => {
    const watch = createWatch({ first_token_timeout_ms: Infinity, idle_timeout_ms: 2 ** 40, total_timeout_ms: Infinity }, new AbortController().signal);
    vi.advanceTimersByTime(3_600_000);
    watch.progress();
    vi.advanceTimersByTime(3_600_000);
    expect(watch.verdict()).toBeNull();
    watch.close();
  });

  it('leaves no timer and no listener when it is closed, and fires no more', () => {
    const caller = new AbortController();
    const watch = createWatch(limits, caller.signal);
    watch.progress();
    watch.close();
    watch.progress();
    expect(vi.getTimerCount()).toBe(0);
    expect(getEventListeners(caller.signal, 'abort')).toHaveLength(0);
    caller.abort();
    expect(watch.verdict()).toBeNull();
  });
});
