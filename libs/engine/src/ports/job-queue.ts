/**
 * The port of the queue: who delivers jobs. Jobs are added by the run store's scripts; this side only takes them.
 *
 * Q1  A job carries a run id and a number, nothing else. It may be delivered more than once.
 * Q2  A handler that resolves completes the job; `hand_back` makes it come again at once, in front of its priority.
 * Q3  `signal` aborts when the queue no longer believes in this delivery (lost lease). It is courtesy: the fence decides.
 */

export type Job =
  | { readonly type: 'turn'; readonly run_id: string; readonly n: number }
  | { readonly type: 'finish'; readonly run_id: string };

export type JobOutcome = 'done' | 'hand_back';

export type JobHandler = (job: Job, signal: AbortSignal) => Promise<JobOutcome>;

export interface JobConsumer {
  /** What keeps jobs from being taken; empty when all is well. */
  problems(): readonly string[];
  /** By shard: jobs taken so far, and in hand now. */
  load(): readonly { readonly taken: number; readonly in_hand: number }[];
  /** Takes no new job; resolves when all running ones have ended. */
  close(): Promise<void>;
}
