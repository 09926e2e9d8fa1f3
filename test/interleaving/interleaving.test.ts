/**
 * Every way in which workers can stop, come back late and be told things, on the in-memory double.
 * Each scenario plays one run of three turns (a read and a write, a write, an answer) to its end and checks all invariants.
 */
import { describe, expect, test } from 'vitest';
import type { Command } from '@treadle/core';
import { play, type Scenario, type Switches } from './play.ts';
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

const crashAfterCrash: Scenario[] = crashes.flatMap((a) => crashes.map((b) => ({ stops: [a, b] })));
const zombieThenCrash: Scenario[] = zombies.flatMap((a) => crashes.map((b) => ({ stops: [a, b] })));
const twoZombies: Scenario[] = zombies.flatMap((a) => zombies.map((b) => ({ stops: [a, b] })));
const zombieThatCrashes: Scenario[] = zombies.flatMap((a) => [1, 2, 3, 4].flatMap((after) => done.flatMap((each) => zombies.slice(0, 8).map((b) => ({
  stops: [{ ...a, then: { after, done: each } }, b] })))));
const commandAtEachStep: Scenario[] = commands.flatMap((command) => at.flatMap((step) =>
  [{ stops: [] }, ...crashes.map((a) => ({ stops: [a] })), ...zombies.map((a) => ({ stops: [a] }))].map((base) => ({ ...base, command: { step, command } }))));
const resends: Scenario[] = at.flatMap((write) => [0, 1, 2, 3, 5, 8].flatMap((later) =>
  [{ stops: [] }, ...zombies.map((a) => ({ stops: [a] }))].map((base) => ({ ...base, resend: { write, later } }))));
const rollBacks: Scenario[] = at.slice(0, 14).flatMap((first) => zombies.slice(0, 20).flatMap((a) => zombies.slice(0, 20).flatMap((b) => [1, 2, 3].map((writes) => ({
  stops: [{ at: first, done: true, as: 'crash' as const }, a, b], rollBack: { afterWorker: 1, writes } })))));

/** The first scenarios that violate something, with what they violate. */
async function failures(scenarios: readonly Scenario[], switches: Switches = {}, enough = 1): Promise<string[]> {
  const found: string[] = [];
  for (const scenario of scenarios) {
    const problems = await play(scenario, switches);
    if (problems.length > 0) found.push(`${JSON.stringify(scenario)}: ${problems.join('; ')}`);
    if (found.length >= enough) break;
  }
  return found;
}

describe('the invariants hold', () => {
  test.each([
    ['nothing goes wrong', [{ stops: [] }]],
    ['a worker crashes at each step, and the next one too', crashAfterCrash],
    ['a zombie comes back after another worker crashed', zombieThenCrash],
    ['two zombies come back', twoZombies],
    ['a zombie comes back and crashes, and then another comes back', zombieThatCrashes],
    ['a command comes at each step, beside a crash or a zombie', commandAtEachStep],
    ['any write is sent again late', resends],
    ['the store loses its last writes', rollBacks],
  ] satisfies [string, Scenario[]][])('when %s', async (_name, scenarios) => {
    expect(await failures(scenarios, {}, 5)).toEqual([]);
  }, 120_000);
});

describe('each protection is needed: without it something breaks', () => {
  test.each([
    ['the claim check', zombieThatCrashes, { protections: { claimCheck: false } }],
    ['the expected seq, under a resend', resends, { protections: { expectedSeq: false } }],
    ['the claim id, under a rolled-back store', rollBacks, { protections: { claimId: false } }],
    ['the inbox check', commandAtEachStep, { protections: { inboxCheck: false } }],
    ['the reply-first commit', crashAfterCrash, { mutations: { lateReply: true } }],
    ['the ledger', crashAfterCrash, { mutations: { noLedger: true } }],
  ] satisfies [string, Scenario[], Switches][])('%s', async (_name, scenarios, switches) => {
    expect(await failures(scenarios, switches)).not.toEqual([]);
  }, 120_000);
});
