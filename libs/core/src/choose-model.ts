/**
 * Which model of the chain is asked: the one that the run is on, else the next that it has not tried. A model that cannot be asked
 * now is passed over, without a turn; where none can, the run waits for the first.
 */
import type { ModelSpec } from './agent-spec.ts';
import { specOf, type RunState } from './state.ts';
import type { Unavailable } from './turn-input.ts';

export type Choice =
  | { readonly type: 'model'; readonly position: number; readonly skipped: readonly { readonly model: string; readonly why: string }[] }
  /** For the model at `position`; `until_s`: epoch seconds. */
  | { readonly type: 'wait'; readonly position: number; readonly reason: 'quota' | 'models'; readonly until_s: number; readonly wait_ms: number }
  | { readonly type: 'none' };

/** Places in the chain that may be asked next, the preferred one first: who has refused since the last accepted reply is not asked again. */
function places(state: RunState): readonly number[] {
  const { models } = specOf(state).chain;
  const untried = models.map((_, place) => place).filter((place) => place !== state.position && !state.tried.includes(place));
  return models[state.position] === undefined ? untried : [state.position, ...untried];
}

/** The models that may be asked next, the preferred one first. */
export function candidates(state: RunState): readonly ModelSpec[] {
  const { models } = specOf(state).chain;
  return places(state).flatMap((place) => models[place] ?? []);
}

export function chooseModel(state: RunState, unavailable: readonly Unavailable[]): Choice {
  const { models } = specOf(state).chain;
  return choose(places(state), { nameOf: (place) => models[place]?.name ?? '', unavailable });
}

/** Where a run goes that leaves its model; `none` where nothing is left. */
export function chooseHop(state: RunState, unavailable: readonly Unavailable[]): Choice {
  const { models } = specOf(state).chain;
  return choose(places(state).filter((place) => place !== state.position), { nameOf: (place) => models[place]?.name ?? '', unavailable });
}

interface Choosing { readonly nameOf: (place: number) => string; readonly unavailable: readonly Unavailable[] }

function choose(order: readonly number[], { nameOf, unavailable }: Choosing): Choice {
  const away = new Map(unavailable.map((each) => [each.model, each]));
  const free = order.find((place) => !away.has(nameOf(place)));
  const waits = order.flatMap((position) => {
    const { wait, why } = away.get(nameOf(position)) ?? { wait: null };
    return wait === null ? [] : [{ position, why, ...wait }];
  });
  const first = waits.toSorted((a, b) => a.until_s - b.until_s)[0];
  if (free === undefined && first !== undefined) {
    return { type: 'wait', position: first.position, reason: first.why === 'breaker_open' ? 'models' : 'quota', until_s: first.until_s, wait_ms: first.wait_ms };
  }
  // What no waiting mends may have been mended by somebody: rather than give up, it is asked.
  const position = free ?? order[0];
  if (position === undefined) return { type: 'none' };
  const before = order.slice(0, order.indexOf(position));
  return { type: 'model', position, skipped: before.map((place) => ({ model: nameOf(place), why: away.get(nameOf(place))?.why ?? '' })) };
}
