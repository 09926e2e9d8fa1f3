/** What keeps a call from being carried out unasked, otherwise than it was approved, or twice. */
import type { Protection } from './protections.ts';

export const approvalProtections: readonly Protection[] = [
  {
    name: 'batch-waits',
    without: 'each call of a batch is carried out as soon as nobody has to approve of it any more',
    edits: [
      {
        file: 'libs/core/src/await-approval.ts', find: 'if (pending.length === 0) return null;',
        replace: "if (pending.length === 0 || state.calls.some((call) => !call.settled && call.approval?.state !== 'waiting')) return null;",
      },
      {
        file: 'libs/core/src/questions.ts', find: '  if (waitsForApproval(state)) return [];\n  return state.calls.filter((call) => !call.settled &&',
        replace: "  return state.calls.filter((call) => !call.settled && call.approval?.state !== 'waiting' &&",
      },
    ],
    tests: [{ file: 'test/interleaving/approving.test.ts', named: 'an undisturbed run' }],
  },
  {
    name: 'approved-digest',
    without: 'a call is carried out with other arguments than those that were approved',
    edits: [{ file: 'libs/engine/src/approvals.ts', find: " && approval.digest === callDigest(tool, tool_input)) return null;", replace: ') return null;' }],
    tests: [{ file: 'test/engine/approvals.test.ts', named: 'a call that is not the one that was approved' }],
  },
  {
    name: 'word-on-digest',
    without: 'a word counts for whatever call has its id by now',
    edits: [
      { file: 'libs/core/src/awaited-words.ts', find: '  return `${tool_use_id} ${digest}`;', replace: "  return `${tool_use_id} ${digest.slice(0, 0)}`;" },
      { file: 'libs/core/src/approval.ts', find: ' && each.digest === digest);', replace: ');' },
    ],
    tests: [{ file: 'test/engine/approvals.test.ts', named: 'a run that waits comes back' }],
  },
  {
    name: 'first-decision',
    without: 'the last of several decisions on a call is accepted like the first',
    edits: [{ file: 'libs/run-store/src/scripts/includes/words.lua', find: "  if includes(cjson.decode(ctl.decided or '[]'), word.subject) then return { 'already_decided' } end\n", replace: '' }],
    tests: [{ file: 'libs/run-store/src/run-store.test.ts', named: 'a word on an approval is taken for the very call' }],
  },
  {
    name: 'asked-is-not-begun',
    without: 'a call that waited for approval when the store was lost counts as one that may have happened',
    edits: [{ file: 'libs/engine/src/ledger-of-log.ts', find: "if (entry.status === 'started') { this.#held.set(id, entry); this.#entries.delete(id); }", replace: "if (entry.status === 'started') this.#held.set(id, entry);" },
      { file: 'libs/engine/src/ledger-of-log.ts', find: '        for (const [id, entry] of this.#held) this.#entries.set(id, { ...entry, started_epoch: event.epoch });\n', replace: '' }],
    tests: [{ file: 'test/engine/approvals.test.ts', named: 'a run that waits comes back' }],
  },
];
