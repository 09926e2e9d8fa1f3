/** What keeps a time from making two runs or none, and a batch from being half there. */
import type { Protection } from './protections.ts';

const conformance = (named: string) => ({ file: 'libs/run-store/src/schedule-store.test.ts', named });
const fire = 'libs/engine/src/fire-schedules.ts';

export const scheduleProtections: readonly Protection[] = [
  {
    name: 'schedule-moved-once',
    without: 'a schedule is moved on by whoever comes, from whichever time',
    edits: [{ file: 'libs/run-store/src/scripts/advance_schedule.lua', find: 'if removed_at or next_ms ~= advance.from then', replace: 'if removed_at then' }],
    tests: [conformance('is moved on once from a time')],
  },
  {
    name: 'schedule-run-id',
    without: 'each look at a due time makes a run with an id of its own',
    edits: [{ file: fire, find: '.update(`${schedule_id}\\n${due_ms}`)', replace: '.update(`${schedule_id}\\n${due_ms}${Math.random()}`)' }],
    tests: [{ file: 'test/engine/schedules.test.ts', named: 'makes no second one when whoever made the first died' }],
  },
  {
    name: 'schedule-left-at-once',
    without: 'a worker that lacks the agent of a schedule takes it again and again before one that has it',
    edits: [{ file: fire, find: 'if (schedule.next_ms !== null) await deps.schedules.leave(schedule.id, schedule.next_ms);', replace: '' }],
    tests: [{ file: 'test/engine/schedules.test.ts', named: 'an agent that is not here may be on another worker' }],
  },
  {
    name: 'schedule-window',
    without: 'a time that was missed is made up for, however old it is',
    edits: [{ file: fire, find: 'now_ms - due_ms > catch_up_s * 1000;', replace: 'catch_up_s < 0;' }],
    tests: [{ file: 'test/engine/schedules.test.ts', named: 'one, too old by a second' }],
  },
  {
    name: 'schedule-stays-removed',
    without: 'a schedule that was removed is created again by a request that comes late',
    edits: [{ file: 'libs/run-store/src/scripts/create_schedule.lua', find: "if removed_at then return { 'removed' } end\nif tenant then", replace: 'if tenant and not removed_at then' }],
    tests: [conformance('a removed one is gone')],
  },
  {
    name: 'schedule-archived-version',
    without: 'a change that is made while an earlier one goes to the archive never gets there',
    edits: [{ file: 'libs/run-store/src/scripts/schedule_archived.lua', find: 'if version and version ~= ARGV[2] then', replace: 'if false then' }],
    tests: [conformance('what was changed is due for the archive')],
  },
  {
    name: 'schedule-archive-order',
    without: 'a put of a schedule that comes late overwrites a later one in the archive',
    edits: [{ file: 'libs/event-archive/src/keys.ts', find: '${digits(version)}.json`', replace: '${digits(1)}.json`' }],
    tests: [{ file: 'libs/event-archive/src/conformance.test.ts', named: 'gives back the newest version of each schedule' }],
  },
  {
    name: 'batch-key',
    without: 'a batch that is asked for again makes its runs again',
    edits: [{ file: 'apps/api/src/runs/batch.ts', find: 'idempotencyKey: idempotencyKey === undefined ? undefined : `batch\\n${idempotencyKey}\\n${index}`,', replace: 'idempotencyKey: undefined,' }],
    tests: [{ file: 'apps/api/src/runs/batch.test.ts', named: 'completes what the store' }],
  },
  {
    name: 'batch-whole',
    without: 'a batch is begun before the sessions of its runs were looked at',
    edits: [{ file: 'apps/api/src/runs/batch.ts', find: '    await checkSessions(context, asked);\n', replace: '' }],
    tests: [{ file: 'apps/api/src/runs/batch.test.ts', named: 'a session that is busy, or would be' }],
  },
];
