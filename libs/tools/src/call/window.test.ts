import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { openWindow } from './window.ts';

beforeEach(() => { vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] }); });
afterEach(() => { vi.useRealTimers(); });

function opened() {
  return openWindow(new AbortController().signal, { timeoutMs: 100, maxTotalMs: 350, graceMs: 10 });
}

test('the time-out runs from the beginning, and progress begins it anew', () => {
  const window = opened();
  vi.advanceTimersByTime(1_000);
  expect(window.cause()).toBeNull();
  window.progress();
  window.begin();
  vi.advanceTimersByTime(99);
  window.progress();
  vi.advanceTimersByTime(99);
  expect(window.cause()).toBeNull();
  vi.advanceTimersByTime(1);
  expect([window.cause(), window.timeWords(), window.signal.aborted]).toEqual(['timed_out', 'timed out: there was no progress for 100 ms', true]);
});

test('no progress passes the time in all', () => {
  const window = opened();
  window.begin();
  for (let time = 0; time < 6; time++) {
    vi.advanceTimersByTime(58);
    window.progress();
  }
  expect(window.cause()).toBeNull();
  vi.advanceTimersByTime(2);
  expect([window.cause(), window.timeWords()]).toEqual(['timed_out', 'timed out after 350 ms in all']);
  window.progress();
  vi.advanceTimersByTime(1_000);
  expect(window.timeWords()).toBe('timed out after 350 ms in all');
});

test('after its end no timer is left', () => {
  const window = opened();
  window.begin();
  window.progress();
  window.end();
  expect(vi.getTimerCount()).toBe(0);
  window.progress();
  window.begin();
  expect([vi.getTimerCount(), window.signal.aborted]).toEqual([0, false]);
});
