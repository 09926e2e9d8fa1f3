/**
 * Waits until the process is asked to stop: SIGTERM, SIGINT, or the end of the parent that started it. Asked for at the very start
 * of a command, so that stopping while it starts is stopping, too.
 */
export async function untilStopped(): Promise<void> {
  await new Promise<void>((resolve) => {
    const stop = (): void => { resolve(); };
    process.once('SIGTERM', stop);
    process.once('SIGINT', stop);
    if (process.send === undefined) return;
    process.once('disconnect', stop);
    if (!process.connected) stop();
  });
}

/** Tells the parent where this process listens; a parent that has gone hears nothing. */
export function tellParent(message: { readonly url: string }): void {
  if (process.send !== undefined && process.connected) process.send(message, () => undefined);
}
