/**
 * The queue's part of the run store's scripts: how a job is added, and how one is found (the run store's `JobFragment`).
 * Job ids are `<run_id>-<n>` and `<run_id>-finish`; an id that waits or is active is not added again.
 *
 * Priority classes in BullMQ (lower first): 1 whatever goes in front of everything (a cancel of a run that nobody has begun,
 * an ended run's `finish`) · 1 + p hand-overs and wakes of a run with priority p (1 to 100) · 1000 + p first turns.
 * Stalled jobs come back ahead of all of these.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { loadAddScript } from './add-script.ts';
import { queueKey } from './queue-names.ts';

const keyParts = ['marker', 'meta', 'id', 'prioritized', 'delayed', 'completed', 'active', 'events', 'pc'] as const;

/** Reads BullMQ's script; throws where the installed BullMQ is not the one that was tried. */
export function turnJobs(options: { readonly prefix: string }): { readonly lua: string; keys(shard: number): readonly string[] } {
  const { content } = loadAddScript();
  const ours = readFileSync(join(import.meta.dirname, 'turn-jobs.lua'), 'utf8');
  return {
    lua: `local function queue_bullmq_add(KEYS, ARGV)\n${content}\nend\n${ours}`,
    keys: (shard) => keyParts.map((part) => queueKey(options.prefix, shard, part)),
  };
}
