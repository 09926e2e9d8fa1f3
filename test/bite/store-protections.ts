/** The protections that stand in the scripts of the run store: each is a check that a script makes before it writes. */
import type { Protection } from './protections.ts';

const scripts = 'libs/run-store/src/scripts';
const conformance = (named: string) => ({ file: 'libs/run-store/src/run-store.test.ts', named });
const fence = conformance('is fenced, and changes nothing at all, unless epoch, claim id and seq are all equal');

export const storeProtections: readonly Protection[] = [
  {
    name: 'job-number',
    without: 'a job of any number is given the run',
    edits: [{ file: `${scripts}/claim.lua`, find: "if num(ctl, 'job_n') ~= request.n then return { 'stale' } end\n", replace: '' }],
    tests: [conformance('of a job number that is not the current one changes nothing')],
  },
  {
    name: 'job-live',
    without: 'a run that waits or is paused is given to a job all the same',
    edits: [{ file: `${scripts}/claim.lua`, find: "if ctl.job_live ~= '1' then return { 'stale' } end\n", replace: '' }],
    tests: [conformance('of a paused or waiting run finds no live job')],
  },
  {
    name: 'fence',
    without: 'anybody may write who knows the last seq',
    edits: [{ file: `${scripts}/includes/claim.lua`, find: "return holds(ctl, write) and num(ctl, 'last_seq')", replace: "return num(ctl, 'last_seq')" }],
    tests: [fence],
  },
  {
    name: 'expected-seq',
    without: 'a write that is sent again late is taken, whatever was written since',
    edits: [{ file: `${scripts}/includes/claim.lua`, find: "return holds(ctl, write) and num(ctl, 'last_seq') == write.expected_seq", replace: 'return holds(ctl, write)' }],
    tests: [conformance('is fenced by its seq alone')],
  },
  {
    name: 'claim-id',
    without: 'two claims of the same epoch, as after a failover, may both write',
    edits: [{ file: `${scripts}/includes/claim.lua`, find: "ctl.claim ~= '' and ctl.claim == claim.claim_id and", replace: "ctl.claim ~= '' and" }],
    tests: [fence],
  },
  {
    name: 'repeat',
    without: 'a write that is sent again after a cut connection is fenced, not answered',
    edits: [{ file: `${scripts}/commit.lua`, find: 'if is_repeat(ctl, commit) then', replace: 'if false then' }],
    tests: [conformance('sent again is answered as the first time, and writes nothing')],
  },
  {
    name: 'inbox-at-end',
    without: 'a commit that waits, pauses or ends passes over commands that it has not seen',
    edits: [{ file: `${scripts}/commit.lua`, find: 'if (not goes_on or commit.begins or decides) and', replace: 'if (commit.begins or decides) and' }],
    tests: [conformance('is refused while a command is in the inbox that the claimant has not seen')],
  },
  {
    name: 'inbox-at-begin',
    without: 'a call begins although a cancel or a pause was accepted before',
    edits: [{ file: `${scripts}/commit.lua`, find: 'if (not goes_on or commit.begins or decides) and', replace: 'if (not goes_on or decides) and' }],
    tests: [conformance('no call begins while a command is unseen')],
  },
  {
    name: 'command-to-ended',
    without: 'an ended run takes commands',
    edits: [{ file: `${scripts}/includes/accept.lua`, find: 'if has_ended(ctl) or (cancelling', replace: 'if (cancelling' }],
    tests: [conformance('to an ended run are refused with its status')],
  },
  {
    name: 'command-id',
    without: 'a command that is sent again is taken again',
    edits: [{ file: `${scripts}/includes/accept.lua`, find: "if redis.call('ZSCORE', run.commands, command.command_id) then return { 'accepted' } end\n", replace: '' }],
    tests: [conformance('are accepted in order, and once per command id')],
  },
  {
    name: 'not-after-create',
    without: 'a run begins after its request was answered 503',
    edits: [{ file: `${scripts}/create.lua`, find: "if now > create.not_after_ms then return { 'too_late' } end\n", replace: '' }],
    tests: [conformance('does nothing after its time (no ghosts)')],
  },
  {
    name: 'not-after-command',
    without: 'a command is taken after its request was answered 503',
    edits: [{ file: `${scripts}/includes/accept.lua`, find: "if now > command.not_after_ms then return { 'too_late' } end\n", replace: '' }],
    tests: [conformance('do nothing after their time')],
  },
  {
    name: 'create-once',
    without: 'a run id that is created again begins again',
    edits: [{ file: `${scripts}/create.lua`, find: "if redis.call('EXISTS', run.ctl) == 1 then return { 'exists' } end\n", replace: '' }],
    tests: [conformance('is idempotent by run id: asked again it changes nothing')],
  },
  {
    name: 'idempotency-key',
    without: 'a key that is held is reserved again',
    edits: [{ file: `${scripts}/reserve_key.lua`, find: 'if stored[1] then\n', replace: 'if false then\n' }],
    tests: [conformance('a key is reserved once per tenant, for the run that came first')],
  },
  {
    name: 'hand-over',
    without: 'a turn is committed without the job of the next one',
    edits: [{
      file: `${scripts}/includes/next.lua`,
      find: "    raise_job(shard, job_keys, ctl, set, { run_id = commit.run_id, urgency = 'begun', look_again = now + commit.grace_ms })\n",
      replace: "    set.put('job_n', num(ctl, 'job_n') + 1, 'job_live', 1)\n",
    }],
    tests: [conformance('`job` adds the job of the next number before it answers')],
  },
  {
    name: 'finish-job',
    without: 'a run ends without the job of its last duties',
    edits: [{ file: `${scripts}/includes/next.lua`, find: "    add_job(job_keys, 'finish', commit.run_id, 0, 'front', num(ctl, 'priority'))\n", replace: '' }],
    tests: [conformance('`end` adds the finish job')],
  },
  {
    name: 'pump',
    without: 'jobs that were lost are not added again',
    edits: [{ file: `${scripts}/pump.lua`, find: '    if not has_job(job_keys, kind, id, n) then\n', replace: '    if false then\n' }],
    tests: [conformance('adds a lost job again under its number')],
  },
  {
    name: 'nudges-counted',
    without: 'a run whose job is lost again and again is never ended',
    edits: [{ file: `${scripts}/pump.lua`, find: "      if kind == 'turn' then redis.call('HINCRBY', key, 'nudges', 1) end\n", replace: '' }],
    tests: [conformance('adds a lost job again under its number')],
  },
  {
    name: 'child-under-claim',
    without: 'a sub-agent is started by a worker that has lost its run, or for a run that is being cancelled',
    edits: [{ file: `${scripts}/create.lua`, find: "  if not parent or parent.cancelling == '1' or not holds(parent, create.parent) then return { 'fenced' } end\n", replace: '' }],
    tests: [conformance('no child is created under a claim that does not hold')],
  },
  {
    name: 'tree-told',
    without: 'runs are not told of the end, the pause or the cancel of those that they belong to',
    edits: [{ file: `${scripts}/commit.lua`, find: 'for _, told in ipairs(commit.tell) do accept_command(told.keys, shard, keys_from(14), told.command) end\n', replace: '' }],
    tests: [conformance('a commit tells other runs')],
  },
  {
    name: 'due',
    without: 'a wait that is over is forgotten',
    edits: [{ file: `${scripts}/pump.lua`, find: "    add_job(job_keys, 'turn', id, num(ctl, 'job_n'), urgency_of(ctl), num(ctl, 'priority'))\n", replace: '' }],
    tests: [conformance('`wait` has no job until the time has come')],
  },
];
