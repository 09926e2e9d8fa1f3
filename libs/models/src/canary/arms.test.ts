import type { ChainSpec } from '@treadle/core';
import type { AssignRun } from '@treadle/engine';
import { testModel } from '@treadle/testkit';
import { describe, expect, test } from 'vitest';
import { armedChain, bucketOf, createArms } from './arms.ts';

const chain: ChainSpec = { name: 'default', models: ['small', 'big', 'next'].map(testModel), canary: { model: 'next', arm: 'control', stage: 0 } };
const names = (spec: ChainSpec) => spec.models.map((model) => model.name);
const ids = Array.from({ length: 10_000 }, (_, n) => `run_${n.toString(16).padStart(32, '0')}`);

describe('the bucket of a run', () => {
  test('is the same whenever it is asked for, and another in another chain', () => {
    expect(bucketOf(ids[0]!, 'default')).toBe(bucketOf(ids[0]!, 'default'));
    const both = ids.filter((id) => bucketOf(id, 'default') < 5 && bucketOf(id, 'other') < 5);
    expect(both.length).toBeLessThan(60);
  });

  test.each([5, 25, 50, 100])('is below %i for that part of all runs', (stage) => {
    const part = ids.filter((id) => bucketOf(id, 'default') < stage).length / ids.length * 100;
    expect(Math.abs(part - stage)).toBeLessThan(1.5);
  });
});

describe('the chain', () => {
  test('has the canary first in its arm, last in the other, and says so', () => {
    expect(armedChain(chain, 'next', { arm: 'canary', stage: 5 })).toMatchObject({ name: 'default', canary: { model: 'next', arm: 'canary', stage: 5 } });
    expect(names(armedChain(chain, 'next', { arm: 'canary', stage: 5 }))).toEqual(['next', 'small', 'big']);
    expect(names(armedChain(chain, 'next', { arm: 'control', stage: 0 }))).toEqual(['small', 'big', 'next']);
    // Of a run that is forked in the other arm.
    expect(names(armedChain(armedChain(chain, 'next', { arm: 'canary', stage: 5 }), 'next', { arm: 'control', stage: 5 }))).toEqual(['small', 'big', 'next']);
  });

  test('without a canary is left alone, and nobody is asked', async () => {
    const nobody = () => Promise.reject(new Error('asked'));
    const arms = createArms({ assign: nobody, withdraw: nobody }, { onUnknown: (error) => { throw error; } });
    const plain = { name: 'plain', models: [testModel('small')] };
    expect(await arms.assign(plain, { run_id: ids[0]!, run_at_ms: null })).toBe(plain);
    await arms.withdraw(plain, ids[0]!);
  });

  test('is as the fleet says', async () => {
    const asked: AssignRun[] = [];
    const withdrawn: string[][] = [];
    const arms = createArms({
      assign: async (run) => { asked.push(run); return { type: 'assigned', arm: 'canary', stage: 25 }; }, withdraw: async (...run) => { withdrawn.push(run); } });
    const armed = await arms.assign(chain, { run_id: ids[7]!, run_at_ms: 17 });
    expect(names(armed)).toEqual(['next', 'small', 'big']);
    expect(armed.canary).toEqual({ model: 'next', arm: 'canary', stage: 25 });
    expect(asked).toEqual([{ chain: 'default', model: 'next', run_id: ids[7], bucket: bucketOf(ids[7]!, 'default'), run_at_ms: 17 }]);
    await arms.withdraw(armed, ids[7]!);
    expect(withdrawn).toEqual([['default', ids[7]]]);
  });

  test.each([
    ['fails', () => Promise.reject(new Error('away'))], ['does not answer', () => new Promise<never>(() => undefined)], ['knows of no trial', () => Promise.resolve({ type: 'none' as const })],
  ])('is that of control where the fleet %s', async (how, answer) => {
    const told: unknown[] = [];
    const arms = createArms({ assign: answer, withdraw: () => Promise.reject(new Error('away')) }, { timeoutMs: 20, onUnknown: (error) => { told.push(error); } });
    const armed = await arms.assign(chain, { run_id: ids[0]!, run_at_ms: null });
    expect(names(armed)).toEqual(['small', 'big', 'next']);
    expect(armed.canary).toEqual({ model: 'next', arm: 'control', stage: 0 });
    expect(told).toHaveLength(how === 'knows of no trial' ? 0 : 1);
    await arms.withdraw(armed, ids[0]!);
  });
});
