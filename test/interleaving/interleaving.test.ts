/**
 * Every way in which workers can stop, come back late and be told things, on the in-memory double.
 * Each scenario plays one run of three turns (a read and a write, a write, an answer) to its end and checks all invariants.
 */
import { describe, expect, test } from 'vitest';
import { failures } from './failures.ts';
import type { Scenario, Switches } from './play.ts';
import { commandAtEachStep, crashAfterCrash, resends, rollBacks, twoZombies, zombieThatCrashes, zombieThenCrash } from './scenarios.ts';

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
  }, 400_000);
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
  }, 400_000);
});
