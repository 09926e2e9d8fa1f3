/** Chains and the trials of new models, for the metrics of the process that looks at them. */
import type { Metrics } from './metrics.ts';

interface NamedChain { readonly name: string; readonly models: readonly { readonly name: string }[]; readonly canary?: unknown }

const decisions = ['promote', 'rollback', 'pause', 'set'];

/** What the configuration says. Every decision there may be starts at 0, so that the first one is seen as a rise. */
export function observeChains(metrics: Metrics, chains: readonly NamedChain[]): void {
  for (const { name: chain, models, canary } of chains) {
    models.forEach((model, position) => { metrics.chainModelInfo.set({ chain, position: String(position), model: model.name }, 1); });
    if (canary !== undefined) for (const decision of decisions) metrics.canaryDecisions.inc({ chain, decision }, 0);
  }
}

/** Where a trial has got to. */
export function observeTrial(metrics: Metrics, { chain, model, stage }: { readonly chain: string; readonly model: string; readonly stage: number }): void {
  metrics.canaryWeight.set({ chain, model }, stage);
}
