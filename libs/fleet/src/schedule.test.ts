/**
 * The schedule of rates, script against double: random courses of calls by a clock that both are given, and every answer must be the same.
 * So what is shown of the double with thousands of courses holds for the script.
 */
import { createMemoryFleet, redisOfFile } from '@treadle/testkit';
import type { ModelFleet } from '@treadle/engine';
import fc from 'fast-check';
import { Redis } from 'ioredis';
import { expect, test } from 'vitest';
import { createModelFleet } from './index.ts';

let redis: Redis;

redisOfFile(({ url }) => redis = new Redis(url), { appendonly: 'no' });

/** Redis' time as scripts are given it: epoch ms that stand in the key `clock`. */
const time = "(function() local ms = tonumber(redis.call('GET', 'clock')) return { math.floor(ms / 1000), ms % 1000 * 1000 } end)()";

/** Stands in for a Redis whose clock a test moves. */
function clocked(): Redis {
  return new Proxy(redis, {
    get: (target, name) => {
      if (name === 'evalsha') return () => Promise.reject(new Error('NOSCRIPT: the text is needed'));
      if (name !== 'eval') return Reflect.get(target, name, target) as unknown;
      return (text: string, ...rest: [number, ...string[]]) => target.eval(text.replace("redis.call('TIME')", () => time), ...rest);
    },
  });
}

const limit = (max: number) => fc.option(fc.integer({ min: 1, max }));
const some = (max: number) => fc.integer({ min: 0, max });
const step = fc.oneof(
  { weight: 5, arbitrary: fc.record({ do: fc.constant('reserve' as const), who: some(7), call: some(3), tokens: some(500), lease: fc.integer({ min: 1, max: 90_000 }) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('settle' as const), who: some(7), call: some(3), tokens: some(600) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('renew' as const), who: some(7), call: some(3), lease: fc.integer({ min: 1, max: 90_000 }) }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('pass' as const), ms: fc.oneof(some(2000), some(40_000)) }) },
);
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

const course = fc.record({
  rates: fc.record({ requests_per_minute: limit(8), tokens_per_minute: limit(900), in_flight: limit(4) }),
  options: fc.record({ lapseMs: some(6000), forgetMs: some(60_000), limits: fc.record({ waiting: fc.integer({ min: 1, max: 8 }) }) }),
  steps: fc.array(step, { minLength: 1, maxLength: 60, size: 'max' }),
});

function act(fleet: ModelFleet, rates: Parameters<ModelFleet['reserve']>[0]['rates'], each: Exclude<Step, { do: 'pass' }>): Promise<unknown> {
  const target = 'credential:x';
  const id = `id-${each.who}-${each.call}`;
  if (each.do === 'settle') return fleet.settle(target, id, each.tokens);
  if (each.do === 'renew') return fleet.renew(target, id, each.lease);
  return fleet.reserve({ id, run_id: `run-${each.who}`, target, rates, tokens: each.tokens, lease_ms: each.lease });
}

test('answers as the double does, whatever is asked', async () => {
  let played = 0;
  const seen = { granted: 0, wait: 0 };
  await fc.assert(fc.asyncProperty(course, async ({ rates, options, steps }) => {
    const memory = createMemoryFleet();
    const [double, real] = [memory.join(options), createModelFleet({ redis: clocked(), prefix: `s${++played}`, callTimeoutMs: 20_000, ...options })];
    for (const each of steps) {
      if (each.do === 'pass') memory.passTime(each.ms);
      await redis.set('clock', memory.now());
      if (each.do === 'pass') continue;
      const answer = await act(double, rates, each) as { type: 'granted' | 'wait' } | undefined;
      expect(await act(real, rates, each)).toEqual(answer);
      if (answer !== undefined) seen[answer.type]++;
    }
  }), { numRuns: 300 });
  // Of both there were enough to compare.
  expect(Math.min(seen.granted, seen.wait)).toBeGreaterThan(200);
}, 120_000);
