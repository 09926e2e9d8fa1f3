/** The protections against a Redis that comes back without its last writes, and against what a failover and a thaw bring. */
import type { Protection } from './protections.ts';

const scripts = 'libs/run-store/src/scripts';
const conformance = (named: string) => ({ file: 'libs/run-store/src/run-store.test.ts', named });
const otherStore = (named: string) => ({ file: 'test/engine/other-store.test.ts', named });

export const lostWriteProtections: readonly Protection[] = [
  {
    name: 'store-named',
    without: 'a run does not know which Redis it was written by',
    edits: [{ file: `${scripts}/claim.lua`, find: 'local moved = ctl.store ~= store\n', replace: 'local moved = false\n' }],
    tests: [conformance('every claim says that the store is another')],
  },
  {
    name: 'epoch-of-a-move',
    without: 'epochs that were lost are given again',
    edits: [{ file: `${scripts}/claim.lua`, find: 'moved and math.max(epoch + lost_claims, now_ms()) or epoch + 1', replace: 'epoch + 1' }],
    tests: [conformance('every claim says that the store is another')],
  },
  {
    name: 'looked-into',
    without: 'a run goes on under another Redis without a look at what the archive has',
    edits: [{ file: 'libs/engine/src/execute-turn.ts', find: '  if (other_store === null) return null;\n', replace: "  if (other_store !== '') return null;\n" }],
    tests: [otherStore('what the archive has is written back')],
  },
  {
    name: 'two-histories',
    without: 'a log is written back over a store that tells another history',
    edits: [{ file: 'libs/engine/src/changed-store.ts', find: '  if (differs.length > 0) return', replace: '  if (differs.length < 0) return' }],
    tests: [otherStore('two histories end the run')],
  },
  {
    name: 'write-back-fence',
    without: 'whoever had the run writes it back',
    edits: [{ file: `${scripts}/write_back.lua`, find: 'if not ctl or not may_write(ctl, back) then', replace: 'if not ctl then' }],
    tests: [conformance('is not written back by whoever does not hold it')],
  },
  {
    name: 'set-back',
    without: 'a reader goes on with another history under the numbers that it has seen',
    edits: [{ file: 'libs/engine/src/read-log.ts', find: '  if (void_.length > 0) {', replace: '  if (void_.length < 0) {' }],
    tests: [{ file: 'apps/api/src/events/reset.test.ts' }],
  },
  {
    name: 'asked-before-sent',
    without: 'a call that waited for its slot is sent without asking whether its run is still held',
    edits: [{ file: 'libs/tools/src/kinds/mcp.ts', find: '        await window.confirm();\n', replace: '' }],
    tests: [{ file: 'libs/tools/src/kinds/mcp.test.ts', named: 'asks when it has its slot' }],
  },
  {
    name: 'asked-after-waiting',
    without: 'a call that waited for its tool is sent without asking whether its run is still held',
    edits: [{ file: 'libs/tools/src/call/run-call.ts', find: '    await window.confirm();\n', replace: '' }],
    tests: [{ file: 'libs/tools/src/call/tool-slots.test.ts', named: 'asks when it has its slot' }],
  },
  {
    name: 'session-order',
    without: 'a run that was restored behind another of its session can be resumed before it',
    edits: [{ file: `${scripts}/command.lua`, find: "if before then return { 'behind', before } end\n", replace: '' }],
    tests: [conformance('one that came back as paused is not resumed before its turn')],
  },
  {
    name: 'failover-heard',
    without: 'the announcement of a failover ends the connection that is on its way to the new master',
    edits: [{ file: 'libs/run-store/src/redis-connection.ts', find: '    this.disconnect();\n    return super.connect', replace: '    return super.connect' }],
    tests: [{ file: 'libs/run-store/src/sentinel.test.ts' }],
  },
  {
    name: 'backlog-bound',
    without: 'new runs are taken however much waits for the archive',
    edits: [{ file: 'apps/api/src/runs/create.ts', find: '  if (why !== null) throw unavailable(why);\n', replace: '' }],
    tests: [{ file: 'apps/api/src/runs/backlog.test.ts' }],
  },
  {
    name: 'release-elsewhere',
    without: 'a run is done by a worker that lacks what it needs, although another has it',
    edits: [{ file: 'libs/engine/src/execute-turn.ts', find: '  return claimed.other_store === null ? deps.elsewhere?.(hold.state) ?? null : null;\n', replace: '  return claimed.other_store === null ? null : null;\n' }],
    tests: [{ file: 'test/engine/elsewhere.test.ts', named: 'waits, with its commands, for the worker that has what it needs' }],
  },
  {
    name: 'woken-for-another',
    without: 'a command that wakes a run early has it begun by a worker that lacks what it needs',
    edits: [{ file: 'libs/engine/src/execute-turn.ts', find: '    if (lacking !== null && await putOff(deps, hold, lacking)) return \'done\';\n', replace: '' }],
    tests: [{ file: 'test/engine/elsewhere.test.ts', named: 'is no reason to go on without what it needs' }],
  },
  {
    name: 'deaths-kept',
    without: 'leaving a run to another worker clears it of the deaths of its workers',
    edits: [{ file: 'libs/engine/src/execute-turn.ts', find: '  hold.tookOver = true;\n', replace: '' }],
    tests: [{ file: 'test/engine/elsewhere.test.ts', named: 'clears no run of the deaths of its workers' }],
  },
];
