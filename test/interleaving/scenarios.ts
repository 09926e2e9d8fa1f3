/**
 * What is played: every place where a worker can stop, combined with what may happen meanwhile.
 */
import type { Command } from '@treadle/core';
import type { Scenario } from './play.ts';
import type { Stop } from './world.ts';

/** Port calls of an undisturbed run, and a few more for takeovers. */
const steps = 20;
const at = Array.from({ length: steps }, (_, index) => index + 1);
const done = [false, true];

function stops(as: Stop['as']): Stop[] {
  return at.flatMap((step) => done.map((each) => ({ at: step, done: each, as })));
}

const crashes = stops('crash');
const zombies = stops('zombie');
const commands: Command[] = [{ type: 'cancel' }, { type: 'steer', text: 'use metric units' }, { type: 'pause' }];

export const crashAfterCrash: Scenario[] = crashes.flatMap((a) => crashes.map((b) => ({ stops: [a, b] })));
export const zombieThenCrash: Scenario[] = zombies.flatMap((a) => crashes.map((b) => ({ stops: [a, b] })));
export const twoZombies: Scenario[] = zombies.flatMap((a) => zombies.map((b) => ({ stops: [a, b] })));
export const zombieThatCrashes: Scenario[] = zombies.flatMap((a) => [1, 2, 3, 4].flatMap((after) => done.flatMap((each) => zombies.slice(0, 8).map((b) => ({
  stops: [{ ...a, then: { after, done: each } }, b] })))));
export const commandAtEachStep: Scenario[] = commands.flatMap((command) => at.flatMap((step) =>
  [{ stops: [] }, ...crashes.map((a) => ({ stops: [a] })), ...zombies.map((a) => ({ stops: [a] }))].map((base) => ({ ...base, command: { step, command } }))));
export const resends: Scenario[] = at.flatMap((write) => [0, 1, 2, 3, 5, 8].flatMap((later) =>
  [{ stops: [] }, ...zombies.map((a) => ({ stops: [a] }))].map((base) => ({ ...base, resend: { write, later } }))));
export const rollBacks: Scenario[] = at.slice(0, 14).flatMap((first) => zombies.slice(0, 20).flatMap((a) => zombies.slice(0, 20).flatMap((b) => [1, 2, 3].map((writes) => ({
  stops: [{ at: first, done: true, as: 'crash' as const }, a, b], rollBack: { afterWorker: 1, writes } })))));
