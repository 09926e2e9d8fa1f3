/** R1 and R2 of the port `WorkerRegistry`, for the double and for Redis alike. */
import type { WorkerRegistry, WorkerReport } from '@treadle/engine';
import { beforeEach, describe, expect, test } from 'vitest';

export interface WorkerRegistryUnderTest {
  readonly registry: WorkerRegistry;
  readonly forgetMs: number;
  passTime(ms: number): void | Promise<void>;
}

const report = (name: string, turns_in_flight = 0): WorkerReport => ({
  name, version: '1.2.3', agent_versions: ['sha256:1'], state: 'running', concurrency: 50, turns_in_flight, taken_per_s: [0.5], started_at_ms: 1_700_000_000_000,
});

export function workerRegistryConformance(name: string, factory: () => WorkerRegistryUnderTest | Promise<WorkerRegistryUnderTest>): void {
  describe(`worker registry: ${name}`, () => {
    let it: WorkerRegistryUnderTest;
    beforeEach(async () => { it = await factory(); });
    const names = async () => (await it.registry.list()).map((worker) => worker.name);

    test('a beat answers with everybody, this one as it has just said', async () => {
      await it.registry.beat(report('b', 1));
      await it.registry.beat(report('a'));
      const all = await it.registry.beat(report('b', 2));
      expect(all).toEqual([{ ...report('a'), last_seen_ms: expect.any(Number) as number }, { ...report('b', 2), last_seen_ms: expect.any(Number) as number }]);
      expect(await it.registry.list()).toEqual(all);
    });

    test('who leaves is gone, and leaving twice is harmless', async () => {
      await it.registry.beat(report('a'));
      await it.registry.beat(report('b'));
      for (let i = 0; i < 2; i++) await it.registry.leave('a');
      expect(await names()).toEqual(['b']);
    });

    test('who is silent is told of for a while, with when it was seen, and then forgotten', async () => {
      const [first] = await it.registry.beat(report('a'));
      await it.passTime(it.forgetMs / 2);
      await it.registry.beat(report('b'));
      const [a, b] = await it.registry.list();
      expect(a?.last_seen_ms).toBe(first?.last_seen_ms);
      expect(b!.last_seen_ms - a!.last_seen_ms).toBeGreaterThanOrEqual(it.forgetMs / 2);
      await it.passTime(it.forgetMs / 2 + it.forgetMs / 4);
      expect(await names()).toEqual(['b']);
    });
  });
}
