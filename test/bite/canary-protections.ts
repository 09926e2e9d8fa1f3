/** What keeps the trial of a new model from being decided by accident. */
import type { Protection } from './protections.ts';

const scripts = 'libs/fleet/src/scripts';
const conformance = (named: string) => ({ file: 'libs/fleet/src/canary-store.test.ts', named });
const judge = (named: string) => ({ file: 'libs/models/src/canary/judge.test.ts', named });

export const canaryProtections: readonly Protection[] = [
  {
    name: 'canary-version',
    without: 'a trial is moved on the word of somebody who has seen it as it was before',
    edits: [{ file: `${scripts}/canary_decide.lua`, find: "if version ~= ARGV[1] then return { 'conflict' } end\n", replace: '' }],
    tests: [conformance('of several on the same state one is made')],
  },
  {
    name: 'canary-once',
    without: 'a run that is reported twice counts twice',
    edits: [{ file: `${scripts}/canary_report.lua`, find: "if ended ~= '' then return { 'again' } end\n", replace: '' }],
    tests: [conformance('count once, in the arm that was given')],
  },
  {
    name: 'canary-sticky',
    without: 'a run that is created again is drawn again',
    edits: [{ file: `${scripts}/canary_assign.lua`, find: "if known then return { 'assigned', string.match(known, '^%a+'), stage } end\n", replace: '' }],
    tests: [conformance('are drawn by the bucket at the stage of the moment, and stay')],
  },
  {
    name: 'equal-age',
    without: 'of the canary what has ended is compared, with most of its failures and few of its slow runs',
    edits: [{ file: 'libs/models/src/canary/equal-age.ts', find: '    reached++;\n    if (run.ended === null', replace: '    if (run.ended !== null) reached++;\n    if (run.ended === null' }],
    tests: [judge('a slow model whose failures alone have ended yet is not taken for a bad one')],
  },
  {
    name: 'charged-arm',
    without: 'a run that left its first model is a success of that model',
    edits: [{ file: 'libs/engine/src/canary.ts', find: "verdict === 'completed' && hopped ? 'failed' : verdict", replace: 'hopped ? verdict : verdict' }],
    tests: [{ file: 'test/engine/canary.test.ts', named: 'charges the run to its arm also after a hop' }],
  },
];
