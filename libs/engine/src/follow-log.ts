/**
 * Live readers: each is told when its run has new events, and reads them itself from where it stands.
 *
 * Owns: the set of waiting readers by run. One feed per process serves them all.
 * A notice is a nudge, nothing more: a reader that missed one finds everything at its next look, which comes at the latest
 * after `maxSilenceMs`.
 */
import type { EventFeed } from './ports/event-feed.ts';
import { readLog, type LogDeps, type LogEntry } from './read-log.ts';

export class LogFollowers {
  readonly #waiting = new Map<string, Set<() => void>>();
  readonly #deps: LogDeps;
  readonly #maxSilenceMs: number;

  constructor(deps: LogDeps, options: { readonly maxSilenceMs: number } = { maxSilenceMs: 2000 }) {
    this.#deps = deps;
    this.#maxSilenceMs = options.maxSilenceMs;
  }

  get size(): number {
    return [...this.#waiting.values()].reduce((sum, set) => sum + set.size, 0);
  }

  /** Listens to the feed until `signal` aborts. */
  async listen(feed: EventFeed, signal: AbortSignal): Promise<void> {
    await feed.follow({
      onNotice: (notice) => this.#wake(notice.run_id),
      onGap: () => { for (const run_id of [...this.#waiting.keys()]) this.#wake(run_id); },
    }, signal);
  }

  /** Events after `after_seq` as they come, in pages, until `run_end` or `signal`. Throws what `readLog` throws. */
  async* follow(run_id: string, options: { readonly after_seq: number; readonly seen_epoch?: number; readonly signal: AbortSignal }): AsyncGenerator<readonly LogEntry[]> {
    let { after_seq, seen_epoch } = options;
    while (!options.signal.aborted) {
      const woken = this.#wait(run_id, options.signal);
      const page = await readLog(this.#deps, run_id, { after_seq, limit: 500, ...(seen_epoch === undefined ? {} : { seen_epoch }) }).catch((error: unknown) => {
        woken.cancel();
        throw error;
      });
      if (page.length > 0) {
        woken.cancel();
        yield page;
        const last = page.at(-1);
        if (last?.type === 'run_end') return;
        after_seq = last?.seq ?? after_seq;
        if (seen_epoch !== undefined && last !== undefined) seen_epoch = last.event.epoch;
      } else await woken.promise;
    }
  }

  #wake(run_id: string): void {
    for (const wake of this.#waiting.get(run_id) ?? []) wake();
  }

  /** Registered before the look, so that what is appended in between is not missed. */
  #wait(run_id: string, signal: AbortSignal): { promise: Promise<void>; cancel: () => void } {
    let wake = (): void => undefined;
    const promise = new Promise<void>((resolve) => { wake = resolve; });
    const timer = setTimeout(wake, this.#maxSilenceMs);
    const readers = this.#waiting.get(run_id) ?? new Set();
    this.#waiting.set(run_id, readers.add(wake));
    signal.addEventListener('abort', wake, { once: true });
    const cancel = (): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', wake);
      readers.delete(wake);
      if (readers.size === 0 && this.#waiting.get(run_id) === readers) this.#waiting.delete(run_id);
      wake();
    };
    return { promise: promise.then(cancel), cancel };
  }
}
