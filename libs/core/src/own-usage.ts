/**
 * What a run itself has used, by model. Its usage is that of the whole tree below it; whoever sums over runs needs each one's own part.
 *
 * The state keeps no account per model, since it would be written with every turn: it keeps what is not the present model's (`spent_before`,
 * `children_usage`), which changes where the model does and where a sub-agent ends. The rest of the run's usage is the present model's.
 */
import { own } from './own.ts';
import type { RunState } from './state.ts';
import { addUsage, noUsage, withoutUsage, type Usage } from './usage.ts';

/** By the name of the model; who has been asked and cost nothing is not left out. */
export function ownUsage(state: RunState): Readonly<Record<string, Usage>> {
  const { model, spent_before } = state;
  return model === null ? spent_before : { ...spent_before, [model]: addUsage(own(spent_before, model) ?? noUsage, sincePresentModel(state)) };
}

function sincePresentModel({ usage, turn_usage, spent_before, children_usage }: RunState): Usage {
  return withoutUsage(addUsage(usage, turn_usage), Object.values(spent_before).reduce(addUsage, children_usage));
}

/** Another model is asked from now on: the account of the one before is closed. */
export function changedModel(state: RunState, next: string): Pick<RunState, 'spent_before'> {
  return state.model === null || state.model === next ? state : { spent_before: ownUsage(state) };
}

/** A summary was made by a model that is not the one which the run's turns go to. */
export function spentBy(state: RunState, model: string | undefined, usage: Usage | undefined): Pick<RunState, 'spent_before'> {
  if (model === undefined || usage === undefined || model === state.model) return state;
  return { spent_before: { ...state.spent_before, [model]: addUsage(own(state.spent_before, model) ?? noUsage, usage) } };
}
