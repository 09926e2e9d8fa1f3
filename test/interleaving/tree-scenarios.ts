/** What is played over a tree of runs. */
import type { TreeScenario } from './tree.ts';

/** Port calls of an undisturbed tree, and some more for takeovers. */
const steps = 50;
const at = Array.from({ length: steps }, (_, index) => index + 1);
const places = at.flatMap((step) => [false, true].map((done) => ({ at: step, done })));
const crashes = places.map((place) => ({ ...place, as: 'crash' as const }));
const zombies = places.map((place) => ({ ...place, as: 'zombie' as const }));
const commands = [{ type: 'cancel' as const }, { type: 'pause' as const }, { type: 'steer' as const, text: 'use metric units' }];

const one: TreeScenario[] = [{ stops: [] }, ...crashes, ...zombies].map((stop) => 'stops' in stop ? stop : { stops: [stop] });
const two: TreeScenario[] = crashes.flatMap((a) => [...crashes, ...zombies].filter((b) => b.at < 25).map((b) => ({ stops: [a, b] })));
const slow: TreeScenario[] = places.flatMap((place) => [{ stops: [], slow: place }, ...crashes.filter((stop) => stop.at % 7 === 1).map((stop) => ({ stops: [stop], slow: place }))]);
const commanded: TreeScenario[] = commands.flatMap((command) => at.flatMap((step): TreeScenario[] =>
  [{ stops: [] }, ...crashes.filter((stop) => stop.at < 40).map((stop) => ({ stops: [stop] })), ...places.map((place) => ({ stops: [], slow: place }))].map((base) => ({ ...base, command: { step, command } }))));
const resent: TreeScenario[] = at.flatMap((write) => [0, 1, 3, 8, 20].flatMap((later): TreeScenario[] =>
  [{ stops: [] }, ...zombies.filter((stop) => stop.at % 5 === 0).map((stop) => ({ stops: [stop] }))].map((base) => ({ ...base, resend: { write, later } }))));

export const treeScenarios = { one, two, slow, commanded, resent };
