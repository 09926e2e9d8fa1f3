import { expect, test } from 'vitest';
import type { Driver } from './driver.ts';

export function pumpTests(it: () => Driver): void {
  const pastGrace = async (): Promise<void> => { await it().under.passTime(it().under.graceMs + 10); };

  test('leaves alone what has its job', async () => {
    const run_id = await it().create();
    await pastGrace();
    expect(await it().pump()).toEqual({ woken: 0, nudged: 0 });
    expect(await it().jobs(run_id)).toEqual(['turn 1']);
  });

  test('adds a lost job again under its number, and counts it until a hand-over', async () => {
    const { run_id } = await it().after({ type: 'job' });
    await it().under.loseJob({ type: 'turn', run_id, n: 2 });
    await pastGrace();
    expect(await it().pump()).toEqual({ woken: 0, nudged: 1 });
    expect(await it().jobs(run_id)).toEqual(['turn 1', 'turn 2']);
    const { claim, claimed } = await it().claim(run_id, 2);
    expect(claimed.nudges).toBe(1);
    await it().commits(it().write(claim, 2, { type: 'job' }));
    expect((await it().claim(run_id, 3)).claimed.nudges).toBe(0);
  });

  test('looks again only after the grace', async () => {
    const run_id = await it().create();
    await pastGrace();
    await it().store.pump(0, { limit: 10, grace_ms: 60_000 });
    await it().under.loseJob({ type: 'turn', run_id, n: 1 });
    expect((await it().pump()).nudged).toBe(0);
  });

  test('is bounded for each kind by itself', async () => {
    for (let i = 0; i < 3; i++) {
      const run_id = await it().create();
      await it().under.loseJob({ type: 'turn', run_id, n: 1 });
      await it().create({ run_at_ms: await it().store.now() });
    }
    await pastGrace();
    expect(await it().pump(2)).toEqual({ woken: 2, nudged: 2 });
    expect((await it().pump(2)).woken).toBe(1);
  });
}
