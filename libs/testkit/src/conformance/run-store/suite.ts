/**
 * The run store's conformance suite: S1 to S13 and W1 to W5 of the port, for the double and for Redis alike (S9, durability, is the real
 * store's own to test). Every promise of the port is a test here; a store that passes can stand in for another.
 */
import { beforeEach, describe } from 'vitest';
import { archiveTests } from './archiving.ts';
import { claimTests } from './claiming.ts';
import { commandTests } from './commands.ts';
import { restoringTests } from './restoring.ts';
import { commitTests } from './committing.ts';
import { creationTests } from './creating.ts';
import { Driver, type RunStoreUnderTest } from './driver.ts';
import { handoverTests } from './handing-over.ts';
import { manyTests } from './many-runs.ts';
import { otherStoreTests } from './other-store.ts';
import { pumpTests } from './pumping.ts';
import { readTests } from './reading.ts';
import { removalTests } from './removing.ts';
import { sessionTests } from './sessions.ts';
import { treeTests } from './trees.ts';
import { usageTests } from './usage.ts';
import { webhookTests } from './webhooks.ts';

/** Registers the suite with vitest. `factory` makes an empty store for each test. */
export function runStoreConformance(name: string, factory: () => RunStoreUnderTest | Promise<RunStoreUnderTest>): void {
  describe(`run store: ${name}`, () => {
    let driver: Driver;
    beforeEach(async () => { driver = new Driver(await factory()); });
    const current = (): Driver => driver;
    describe('create', () => { creationTests(current); });
    describe('claim', () => { claimTests(current); });
    describe('commit', () => { commitTests(current); });
    describe('what follows a commit', () => { handoverTests(current); });
    describe('commands', () => { commandTests(current); });
    describe('restoring', () => { restoringTests(current); });
    describe('another store', () => { otherStoreTests(current); });
    describe('pump', () => { pumpTests(current); });
    describe('many runs at once', () => { manyTests(current); });
    describe('archiving', () => { archiveTests(current); });
    describe('removal', () => { removalTests(current); });
    describe('reads', () => { readTests(current); });
    describe('sessions', () => { sessionTests(current); });
    describe('trees', () => { treeTests(current); });
    describe('usage', () => { usageTests(current); });
    describe('webhooks', () => { webhookTests(current); });
  });
}
