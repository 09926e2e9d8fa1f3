/**
 * A bound on what runs at once. Owns a count of free slots and the line of those who wait, first come, first served.
 *
 * 1  Never more than `size` holders.
 * 2  A slot that is freed goes to the first in line; one whose signal aborts leaves the line.
 */
export interface Slots {
  /** Resolves to the function that frees the slot (calling it again does nothing); rejects with the signal's reason. */
  take(signal: AbortSignal): Promise<() => void>;
}

export function createSlots(size: number): Slots {
  const line: (() => void)[] = [];
  let free = size;
  const release = (): void => {
    const next = line.shift();
    if (next === undefined) free += 1;
    else next();
  };
  const holder = (): (() => void) => {
    let held = true;
    return () => {
      if (!held) return;
      held = false;
      release();
    };
  };
  return {
    async take(signal) {
      signal.throwIfAborted();
      if (free > 0) {
        free -= 1;
        return holder();
      }
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      const leave = (): void => {
        const at = line.indexOf(resolve);
        if (at === -1) return;
        line.splice(at, 1);
        reject(signal.reason as Error);
      };
      line.push(resolve);
      signal.addEventListener('abort', leave, { once: true });
      await promise.finally(() => signal.removeEventListener('abort', leave));
      return holder();
    },
  };
}
