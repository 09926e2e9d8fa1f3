/**
 * Which model of the chain is asked: the one that the run is on, else the next that it has not tried. A model that cannot be asked
 * now is passed over, without a turn; where none can, the run waits for the first. So is one whose request alone would use up what is left
 * of the run's tokens or money; where that is all that keeps the run from going on, its budget is what has ended it.
 */
import type { ModelSpec } from './agent-spec.ts';
import { budgetLeft, type BudgetReason } from './limit-due.ts';
import { own } from './own.ts';
import { estimateTokens } from './request.ts';
import { specOf, type RunState } from './state.ts';
import type { Prices, Unavailable } from './turn-input.ts';
import { costOf, noUsage } from './usage.ts';

export interface Skipped { readonly model: string; readonly why: string }

export type Choice =
  | { readonly type: 'model'; readonly position: number; readonly skipped: readonly Skipped[] }
  /** For the model at `position`; `until_s`: epoch seconds. */
  | { readonly type: 'wait'; readonly position: number; readonly reason: 'quota' | 'models'; readonly until_s: number; readonly wait_ms: number }
  /** `budget`: there are models, and the run cannot pay for a request to any of them. */
  | { readonly type: 'none'; readonly budget?: BudgetReason };

/** What is known from outside when a model is chosen. */
export interface Choosing { readonly unavailable: readonly Unavailable[]; readonly prices?: Prices | undefined }

/** Places in the chain that may be asked next, the preferred one first: who has refused since the last accepted reply is not asked again. */
function places(state: RunState): readonly number[] {
  const { models } = specOf(state).chain;
  const untried = models.map((_, place) => place).filter((place) => place !== state.position && !state.tried.includes(place));
  return models[state.position] === undefined ? untried : [state.position, ...untried];
}

/** The models that may be asked next and that the run can pay for, the preferred one first. */
export function candidates(state: RunState, prices?: Prices): readonly ModelSpec[] {
  const { models } = specOf(state).chain;
  const order = places(state);
  const beyond = beyondBudget(state, order, prices);
  return order.flatMap((place) => beyond.has(place) ? [] : models[place] ?? []);
}

export function chooseModel(state: RunState, choosing: Choosing): Choice {
  return choose(state, places(state), choosing);
}

/** Where a run goes that leaves its model; `none` where nothing is left. */
export function chooseHop(state: RunState, choosing: Choosing): Choice {
  return choose(state, places(state).filter((place) => place !== state.position), choosing);
}

/** A model that takes more than the one the run is on; `none` where there is no larger one that it may ask, and can pay. */
export function chooseLarger(state: RunState, prices: Prices | undefined): Choice {
  const { models } = specOf(state).chain;
  const here = models[state.position]?.context_window ?? 0;
  const larger = places(state).filter((place) => place !== state.position && (models[place]?.context_window ?? 0) > here);
  return choose(state, larger, { unavailable: [], prices });
}

function choose(state: RunState, order: readonly number[], { unavailable, prices }: Choosing): Choice {
  const { models } = specOf(state).chain;
  const nameOf = (place: number): string => models[place]?.name ?? '';
  const away = new Map(unavailable.map((each) => [each.model, each]));
  const beyond = beyondBudget(state, order, prices);
  const payable = order.filter((place) => !beyond.has(place));
  const free = payable.find((place) => !away.has(nameOf(place)));
  const waits = payable.flatMap((position) => {
    const { wait, why } = away.get(nameOf(position)) ?? { wait: null };
    return wait === null ? [] : [{ position, why, ...wait }];
  });
  const first = waits.toSorted((a, b) => a.until_s - b.until_s)[0];
  if (free === undefined && first !== undefined) {
    return { type: 'wait', position: first.position, reason: first.why === 'breaker_open' ? 'models' : 'quota', until_s: first.until_s, wait_ms: first.wait_ms };
  }
  // What no waiting mends may have been mended by somebody: rather than give up, it is asked.
  const position = free ?? payable[0];
  if (position === undefined) return { type: 'none', ...budgetOf([...beyond.values()]) };
  // Whom a hop has passed over is told by the first request behind it.
  const arrives = position === state.position && state.model !== null && nameOf(position) !== state.model;
  const before = arrives ? order.filter((place) => place < position && (beyond.has(place) || away.has(nameOf(place)))) : order.slice(0, order.indexOf(position));
  return { type: 'model', position, skipped: before.map((place) => ({ model: nameOf(place), why: beyond.get(place) ?? away.get(nameOf(place))?.why ?? '' })) };
}

/** Those of the places whose models the run cannot pay for, and why. */
function beyondBudget(state: RunState, order: readonly number[], prices: Prices = {}): ReadonlyMap<number, BudgetReason> {
  const { models } = specOf(state).chain;
  return new Map(order.flatMap((place): [number, BudgetReason][] => {
    const model = models[place];
    const reason = model === undefined || place === state.position ? null : breaks(state, model, prices);
    return reason === null ? [] : [[place, reason]];
  }));
}

function budgetOf([first]: readonly BudgetReason[]): { readonly budget?: BudgetReason } {
  return first === undefined ? {} : { budget: first };
}

/**
 * Which budget a request to another model would break by its prompt alone, which is what is certain of its cost: the estimate, as far as it
 * fits into the model's window. The model that the run is on is not asked for that here: its next reply may come from its cache, and what
 * it has used is looked at before each turn.
 */
function breaks(state: RunState, model: ModelSpec, prices: Prices): BudgetReason | null {
  const left = budgetLeft(state);
  if (left.tokens === Infinity && left.cost_usd === Infinity) return null;
  const input_tokens = Math.min(estimateTokens(state, model.name), model.context_window);
  if (input_tokens >= left.tokens) return 'token_budget';
  const price = own(prices, model.name);
  if (price === undefined) return null;
  const cost = costOf({ ...noUsage, input_tokens }, price);
  return cost > 0 && cost >= left.cost_usd ? 'cost_budget' : null;
}
