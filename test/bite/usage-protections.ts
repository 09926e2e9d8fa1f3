/** What keeps tokens and money from being counted twice, or not at all, and a run from spending what it does not have. */
import type { Protection } from './protections.ts';

const conformance = (named: string) => ({ file: 'libs/run-store/src/run-store.test.ts', named });

export const usageProtections: readonly Protection[] = [
  {
    name: 'usage-once',
    without: 'a run whose finish job comes again is counted again',
    edits: [{ file: 'libs/run-store/src/scripts/finished.lua', find: "ctl.counted ~= '1' and ", replace: '' }],
    tests: [conformance('a run counts once, however often it is finished')],
  },
  {
    name: 'usage-noted',
    without: 'nobody notes that a run was counted',
    edits: [{ file: 'libs/run-store/src/scripts/finished.lua', find: "  redis.call('HSET', run.ctl, 'counted', 1)\n", replace: '' }],
    tests: [conformance('a run counts once, however often it is finished')],
  },
  {
    name: 'usage-own-part',
    without: 'what sub-agents have used counts for the run that started them, too',
    edits: [{ file: 'libs/core/src/own-usage.ts', find: '.reduce(addUsage, children_usage)', replace: '.reduce(addUsage, noUsage)' }],
    tests: [{ file: 'libs/core/src/own-usage.test.ts', named: 'a sub-agent counts for itself' }],
  },
  {
    name: 'hop-within-budget',
    without: 'a run hops to a model whose request alone breaks its budget',
    edits: [{ file: 'libs/core/src/choose-model.ts', find: "return cost > 0 && cost >= left.cost_usd ? 'cost_budget' : null;", replace: 'return null;' }],
    tests: [{ file: 'libs/core/src/choose-model.test.ts', named: 'at a hop: one that would break it is passed over' }],
  },
];
