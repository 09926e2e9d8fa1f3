/**
 * The protections that the tests of reliability are measured by: for each the edit that takes it out of the product, and the
 * tests that must then fail. An edit is exact text, found once in its file, so that a change of the source makes it fail loudly
 * instead of proving nothing.
 */
import { approvalProtections } from './approval-protections.ts';
import { boundaryProtections } from './boundary-protections.ts';
import { canaryProtections } from './canary-protections.ts';
import { fleetProtections } from './fleet-protections.ts';
import { lostWriteProtections } from './lost-write-protections.ts';
import { scheduleProtections } from './schedule-protections.ts';
import { storeProtections } from './store-protections.ts';
import { usageProtections } from './usage-protections.ts';
import { webhookProtections } from './webhook-protections.ts';

export interface Edit { readonly file: string; readonly find: string; readonly replace: string }

/** `named`: part of the name of the tests to run; the whole file without it. */
export interface BitingTest { readonly file: string; readonly named?: string }

export interface Protection {
  readonly name: string;
  /** What the edit makes of the product, in words. */
  readonly without: string;
  readonly edits: readonly Edit[];
  readonly tests: readonly BitingTest[];
}

const interleaving = (named: string): BitingTest => ({ file: 'test/interleaving/interleaving.test.ts', named });
const crashes = interleaving('a worker crashes at each step');
const hold = 'libs/engine/src/hold.ts';

const engineProtections: readonly Protection[] = [
  {
    name: 'reply-first',
    without: 'a reply is committed together with the results of its calls, not before they begin',
    edits: [
      {
        file: hold,
        find: '    const { events, after } = this.stamped(bodies);\n    const known',
        replace: `    const { events: own, after } = this.stamped(bodies);
    const before = this.late?.before ?? this.#state;
    const events = [...(this.late?.events ?? []), ...own];
    extra = { ...extra, ledger: [...(this.late?.ledger ?? []), ...extra.ledger] };
    if (next.type === 'keep' && (this.late ? !extra.decided : bodies.some((body) => body.type === 'tool_use'))) {
      this.late = { before, events, ledger: extra.ledger };
      this.#state = after;
      for (const { tool_use_id, entry } of extra.ledger) this.ledger.set(tool_use_id, entry);
      return 'committed';
    }
    this.late = null;
    const known`,
      },
      { file: hold, find: 'expected_seq: this.#state.last_seq, commit_id', replace: 'expected_seq: before.last_seq, commit_id' },
      { file: hold, find: 'changes: stateChanges(this.#state, after)', replace: 'changes: stateChanges(before, after)' },
    ],
    tests: [crashes],
  },
  {
    name: 'reply-reused',
    without: 'a takeover asks the model again although the reply is in the log',
    edits: [{ file: 'libs/core/src/decide-claimed.ts', find: '  if (state.calls.length === 0) return ask(', replace: '  if (state.calls.length >= 0) return ask(' }],
    tests: [{ file: 'libs/core/src/decide.test.ts' }],
  },
  {
    name: 'ledger-begin',
    without: 'calls run without their begin being recorded',
    edits: [{
      file: hold, find: 'stateChanges(this.#state, after), ledger: extra.ledger,',
      replace: "stateChanges(this.#state, after), ledger: extra.ledger.filter(({ entry }) => entry.status !== 'started'),",
    }],
    tests: [crashes],
  },
  {
    name: 'in-doubt',
    without: 'a `once` call that an earlier worker had begun is begun again',
    edits: [{ file: 'libs/core/src/tool-call.ts', find: "return effect === 'once' ? 'in_doubt' : 'repeat';", replace: "return 'repeat';" }],
    tests: [crashes],
  },
  {
    name: 'deduplication',
    without: 'a call whose result an earlier worker recorded is run again',
    edits: [{
      file: 'libs/core/src/questions.ts',
      find: '  return state.calls.filter((call) => !call.settled && !isQuestion(state, call));',
      replace: '  return state.calls.filter((call) => !isQuestion(state, call));',
    }],
    tests: [{ file: 'test/engine/turn.test.ts', named: 'whose result is recorded is not run again' }],
  },
  {
    name: 'leaves-when-unclear',
    without: 'a worker that does not know what became of its write goes on writing',
    edits: [
      { file: hold, find: "    if (this.#left !== null) return 'fenced';\n", replace: '' },
      { file: 'libs/engine/src/execute-turn.ts', find: '  for (;;) {\n    if (hold.left !== null) return leave(deps, hold);\n', replace: '  for (;;) {\n' },
      { file: 'libs/engine/src/execute-turn.ts', find: 'calls.rest(input);\n    if (hold.left !== null) return leave(deps, hold);\n', replace: 'calls.rest(input);\n' },
    ],
    tests: [{ file: 'test/engine/turn.test.ts', named: 'an append whose answer is unclear ends the delivery' }],
  },
  {
    name: 'fence-heard',
    without: 'a tool under way is not told that its run has a newer claim',
    edits: [{ file: 'libs/engine/src/held-runs.ts', find: "      if (reply.type === 'fenced') hold.abort('fenced');\n      else hold", replace: "      if (reply.type === 'held') hold" }],
    tests: [{ file: 'test/engine/turn.test.ts', named: 'a tool is aborted when its worker hears that the run has a newer claim' }],
  },
  {
    name: 'lease-heard',
    without: 'a worker that is cut off from Redis is not told that its lease is over',
    edits: [{ file: 'libs/queue/src/deliveries.ts', find: "setTimeout(() => { lose(job_id, 'the lease was not renewed in time'); }, leaseMs)", replace: 'setTimeout(() => undefined, leaseMs)' }],
    tests: [{ file: 'libs/queue/src/consume-jobs.test.ts', named: 'a handler is told when no renewal was heard of for a whole lease' }],
  },
  {
    name: 'stalls-without-limit',
    without: 'the queue gives up a job whose workers died, and its run with it',
    edits: [{ file: 'libs/queue/src/consume-jobs.ts', find: 'maxStalledCount: 1e9,', replace: 'maxStalledCount: 0,' }],
    tests: [{ file: 'libs/queue/src/consume-jobs.test.ts', named: 'deaths without number do not make the queue give a job up' }],
  },
  {
    name: 'one-result',
    without: 'a call may have two results',
    edits: [{ file: 'libs/core/src/evolve-reply.ts', find: 'if (call === undefined || call.settled) throw', replace: 'if (call === undefined) throw' }],
    tests: [{ file: 'libs/core/src/evolve.test.ts', named: 'C4: a second result of a call' }],
  },
  {
    name: 'nothing-after-end',
    without: 'an ended run accepts events',
    edits: [
      { file: 'libs/core/src/evolve.ts', find: "  if (state.last_seq > 0 && isEnded(state.status) && event.type !== 'run_end') throw new InvariantBroken(`${event.type} after the end`);\n", replace: '' },
      { file: 'libs/core/src/evolve.ts', find: "  if (state.ended_at !== null) throw new InvariantBroken('nothing follows run_end');\n", replace: '' },
    ],
    tests: [{ file: 'libs/core/src/evolve.test.ts', named: 'C5' }],
  },
  {
    name: 'epoch-order',
    without: 'the fold takes an event of an earlier epoch',
    edits: [{ file: 'libs/core/src/evolve.ts', find: '  if (event.epoch < state.epoch) throw new InvariantBroken(`epoch ${event.epoch} after ${state.epoch}`);\n', replace: '' }],
    tests: [{ file: 'libs/core/src/evolve.test.ts', named: 'an event of an earlier epoch' }],
  },
  {
    name: 'poison',
    without: 'deliveries that died are not counted against a run',
    edits: [{ file: 'libs/core/src/decide-claimed.ts', find: "  if (input.deliveries > input.poison_limit) return endRun(state, 'poisoned', closing);\n", replace: '' }],
    tests: [{ file: 'libs/core/src/decide.test.ts', named: 'too many deliveries that died' }],
  },
  {
    name: 'quarantine',
    without: 'runs beside one on its last chance are blamed for its death',
    edits: [{ file: 'libs/engine/src/quarantine.ts', find: '    await Promise.all([this.#blame([hold]), this.#excuse(beside)]);\n', replace: '    await this.#blame([hold]);\n' }],
    tests: [{ file: 'test/engine/quarantine.test.ts' }],
  },
];

const archiveProtections: readonly Protection[] = [
  {
    name: 'read-back',
    without: 'a segment counts as archived without being read back',
    edits: [{ file: 'libs/event-archive/src/put.ts', find: 'present ?? await readBack(objects, key)', replace: 'present ?? bytes' }],
    tests: [{ file: 'libs/event-archive/src/archive-on-s3.test.ts', named: 'does not answer for bytes that read back as others' }],
  },
  {
    name: 'watermark',
    without: 'the watermark moves before the segment is in the archive',
    edits: [{
      file: 'libs/engine/src/archive-run.ts',
      find: '  await putRange(deps, range);\n  const overtaken = await deps.store.archived(range, deps.options) === \'overtaken\';',
      replace: '  const overtaken = await deps.store.archived(range, deps.options) === \'overtaken\';\n  await putRange(deps, range);',
    }],
    tests: [{ file: 'test/engine/log.test.ts', named: 'after a failure no further run is begun' }],
  },
  {
    name: 'sealed-range',
    without: 'a retry seals a new, longer range',
    edits: [{ file: 'libs/run-store/src/scripts/seal.lua', find: '\nif last == 0 then\n', replace: '\nif true then\n' }],
    tests: [{ file: 'libs/run-store/src/run-store.test.ts', named: 'seals a range, and the same one until it is archived' }],
  },
  {
    name: 'trim',
    without: 'the stream is trimmed beyond what is archived',
    edits: [{
      file: 'libs/run-store/src/scripts/archived.lua', find: 'math.min(last + 1, last_seq - tonumber(ARGV[4]) + 1)', replace: 'last_seq - tonumber(ARGV[4]) + 1',
    }],
    tests: [{ file: 'libs/run-store/src/run-store.test.ts', named: 'never trims what is not in the archive' }],
  },
];

const readerProtections: readonly Protection[] = [
  {
    name: 'strict-tools',
    without: 'in `strict` mode a tool begins before the archive has its call',
    edits: [{ file: 'libs/engine/src/execute-turn.ts', find: 'calls.running ? null : await putOffUntilArchived(deps, hold)', replace: 'null' }],
    tests: [{ file: 'test/engine/strict.test.ts', named: 'each tool is begun when the archive has its call' }],
  },
  {
    name: 'reader-gap',
    without: 'a reader takes whatever seq comes next',
    edits: [
      { file: 'libs/engine/src/read-log.ts', find: 'if (live[0]?.seq === range.after_seq + 1) return', replace: 'if (live.length > 0) return' },
      { file: 'libs/engine/src/read-log.ts', find: '  const end = log.findIndex((entry, index) => entry.seq !== after_seq + 1 + index);', replace: '  const end = -1;' },
    ],
    tests: [{ file: 'test/engine/log.test.ts', named: 'goes from the archive into the store without a gap' }],
  },
  {
    name: 'feed-gap',
    without: 'notices that are missing in the feed are not noticed',
    edits: [{ file: 'libs/run-store/src/event-feed.ts', find: '      if (n !== last + 1) handlers.onGap();\n', replace: '' }],
    tests: [{ file: 'libs/run-store/src/event-feed.test.ts', named: 'trimmed away before they were read are a gap' }],
  },
];

const durabilityProtections: readonly Protection[] = [
  {
    name: 'fsync',
    without: 'the Redis of `treadle up` answers before it has fsynced',
    edits: [{ file: 'apps/cli/src/stack/redis-process.ts', find: "'--appendfsync', 'always'", replace: "'--appendfsync', 'no'" }],
    tests: [{ file: 'apps/cli/src/stack/redis-process.test.ts' }],
  },
  {
    name: 'fsync-told',
    without: '`doctor` and readiness say nothing of a Redis that does not fsync',
    edits: [{ file: 'libs/run-store/src/inspect-redis.ts', find: "  } else if (settings.appendfsync !== 'always') {", replace: "  } else if (settings.appendfsync === '') {" }],
    tests: [{ file: 'libs/run-store/src/redis.test.ts', named: 'is a problem' }],
  },
];

export const protections: readonly Protection[] = [
  ...storeProtections, ...engineProtections, ...archiveProtections, ...readerProtections, ...durabilityProtections, ...fleetProtections, ...canaryProtections,
  ...boundaryProtections, ...lostWriteProtections, ...approvalProtections, ...usageProtections, ...scheduleProtections, ...webhookProtections,
];
