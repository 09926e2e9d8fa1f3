/**
 * What the run store needs of the queue: a piece of Lua that its scripts carry along, so that a turn's events and the next
 * job are one atomic step. The queue knows how a job is written, the run store knows when one must exist.
 *
 * `lua` defines two local functions. `keys` in them is the list that `keys(shard)` gave.
 *   `add_job(keys, kind, run_id, n, urgency, priority)` makes sure that the job exists. kind: 'turn' | 'finish' (n is 0).
 *     urgency: 'front' (ahead of everything) | 'begun' (the run has begun) | 'first' (it has not). priority: 1 (first) to 100.
 *     Adding a job that exists changes nothing. Never fails for a reason that the caller could have checked before.
 *   `has_job(keys, kind, run_id, n)` says whether the job exists: waiting, or in some worker's hands.
 * A name that the text defines beside these begins with `queue_`.
 */
export interface JobFragment {
  readonly lua: string;
  /** In the order the functions expect; all in the hash slot of the shard's other keys. */
  keys(shard: number): readonly string[];
}
