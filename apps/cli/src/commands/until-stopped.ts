/**
 * Waits until the process is asked to stop: SIGTERM, SIGINT, or the end of the parent that started it. Asked for at the very start
 * of a command, so that stopping while it starts is stopping, too. Asked a second time it calls `atOnce`, which must not wait, and
 * ends the process.
 */
export async function untilStopped(atOnce: () => void = () => undefined): Promise<void> {
  await new Promise<void>((resolve) => {
    let askedMs: number | null = null;
    const stop = (): void => {
      const nowMs = performance.now();
      askedMs ??= nowMs;
      // One Ctrl-C may come twice: from the terminal, and passed on by whoever runs us.
      if (nowMs - askedMs > sameMs) {
        atOnce();
        process.exit(interrupted);
      }
      resolve();
    };
    process.on('SIGTERM', stop);
    process.on('SIGINT', stop);
    if (process.send === undefined) return;
    process.once('disconnect', () => { resolve(); });
    if (!process.connected) resolve();
  });
}

const sameMs = 300;
/** As shells count a death by SIGINT. */
const interrupted = 130;

/** Tells the parent where this process listens; a parent that has gone hears nothing. */
export function tellParent(message: { readonly url: string }): void {
  if (process.send !== undefined && process.connected) process.send(message, () => undefined);
}
