/** Waits until the process is asked to stop: SIGTERM, SIGINT, or the end of the parent that started it. */
export async function untilStopped(): Promise<void> {
  await new Promise<void>((resolve) => {
    process.once('SIGTERM', () => { resolve(); });
    process.once('SIGINT', () => { resolve(); });
    if (process.send !== undefined) process.once('disconnect', () => { resolve(); });
  });
}
