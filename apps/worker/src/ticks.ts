/**
 * Recurring duties of a process. A duty never overlaps itself; one that fails is reported and tried again at its next time.
 */

export interface Ticks {
  /** Runs `duty` every `everyMs`, the first time after that. */
  add(name: string, everyMs: number, duty: () => Promise<void>): void;
  /** No duty begins any more; resolves when those under way have ended. */
  stop(): Promise<void>;
}

/** `onFailure` is told of a failure and of its end, not of every repetition. */
export function createTicks(onFailure: (name: string, error: unknown) => void): Ticks {
  const timers = new Set<NodeJS.Timeout>();
  const running = new Set<Promise<void>>();
  let stopped = false;

  function add(name: string, everyMs: number, duty: () => Promise<void>): void {
    let failing = false;
    const again = (): void => {
      if (stopped) return;
      const timer = setTimeout(() => {
        timers.delete(timer);
        const round = duty()
          .then(() => { failing = false; }, (error: unknown) => {
            if (!failing) onFailure(name, error);
            failing = true;
          })
          .finally(() => { running.delete(round); again(); });
        running.add(round);
      }, everyMs);
      timers.add(timer);
    };
    again();
  }

  return {
    add,
    stop: async () => {
      stopped = true;
      for (const timer of timers) clearTimeout(timer);
      await Promise.all(running);
    },
  };
}
