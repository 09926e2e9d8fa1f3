/**
 * Whether the archive takes writes, asked by writing.
 *
 * Owns: the last answer. It is asked for at most once in `everyMs`, however often readiness is: each asking is several requests to the store.
 */
import type { Archive } from './ports/archive.ts';

export interface ArchiveProbe {
  /** Null when it took, listed and gave back what was put there; else in words without secrets. Never throws, answers within `timeoutMs`. */
  problem(): Promise<string | null>;
  /** Whether it ever did. */
  readonly worked: boolean;
}

export interface ArchiveProbeOptions {
  /** Default 30,000. */
  readonly everyMs?: number;
  /** Default 2,000. */
  readonly timeoutMs?: number;
  readonly monotonicMs: () => number;
  /** Told why, for the log. */
  readonly onFailure?: (error: unknown) => void;
}

const refused = 'the archive takes no writes';

export function createArchiveProbe(archive: Pick<Archive, 'check'>, { everyMs = 30_000, timeoutMs = 2000, monotonicMs, onFailure }: ArchiveProbeOptions): ArchiveProbe {
  let worked = false;
  let last: { readonly atMs: number; readonly problem: string | null } | null = null;
  let asking: Promise<string | null> | null = null;

  function ask(): Promise<string | null> {
    asking ??= archive.check().then(() => { worked = true; return null; }, (error: unknown) => { onFailure?.(error); return refused; })
      .then((problem) => {
        last = { atMs: monotonicMs(), problem };
        asking = null;
        return problem;
      });
    return asking;
  }

  return {
    get worked() { return worked; },
    problem: async () => {
      if (last !== null && monotonicMs() - last.atMs < everyMs) return last.problem;
      let timer: NodeJS.Timeout | undefined;
      const late = new Promise<string>((resolve) => { timer = setTimeout(() => { resolve('the archive does not answer'); }, timeoutMs); });
      return Promise.race([ask(), late]).finally(() => { clearTimeout(timer); });
    },
  };
}
