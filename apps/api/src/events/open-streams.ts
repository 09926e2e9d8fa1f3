/**
 * Owns: the requests that stay open (event streams, waits), so that closing the server ends them.
 *
 * 1. After `close` nothing can be opened; who tries is told to go at once.
 * 2. `close` resolves when all have gone. Whoever has not by then is the owner's to cut, by the signal it was given.
 */
export interface OpenStreams {
  readonly closing: boolean;
  /** `leave` is called once, when the server closes; the returned function says that the stream has gone. */
  open(leave: () => void): () => void;
  close(): Promise<void>;
}

export function createOpenStreams(): OpenStreams {
  const open = new Map<symbol, () => void>();
  let closing = false;
  let gone = (): void => undefined;

  return {
    get closing() { return closing; },
    open(leave) {
      if (closing) {
        leave();
        return () => undefined;
      }
      const id = Symbol('stream');
      open.set(id, leave);
      return () => {
        if (!open.delete(id)) return;
        if (open.size === 0) gone();
      };
    },
    async close() {
      closing = true;
      if (open.size === 0) return;
      const all = new Promise<void>((resolve) => { gone = resolve; });
      for (const leave of [...open.values()]) leave();
      await all;
    },
  };
}
