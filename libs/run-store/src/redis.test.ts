import { startRedis, type RedisServer } from '@treadle/testkit';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { connectRedis, createRedisClock, inspectRedis, parseRedisUrl, RedisUrlNotSupported } from './index.ts';
import { problemsOf } from './inspect-redis.ts';

let server: RedisServer;

beforeEach(async () => { server = await startRedis({ appendfsync: 'everysec' }); });
afterEach(async () => { await server.stop(); });

describe('connections', () => {
  test.each([
    'http://h', 'h:6379', '', 'redis://h:port', 'redis-sentinel://h1,h2', 'redis-sentinel://h1,/m', 'redis-sentinel://h1:0/m', 'redis-sentinel:///m', 'redis-cluster://',
    'redis-cluster://h1:65536', 'redis-cluster://h1,h 2', 'redis-cluster://[::1', 'redis-cluster://h1/1', 'redis-cluster://%zz@h1',
  ])('"%s" is no URL of a Redis', (url) => {
    expect(() => connectRedis(url, { role: 'api' })).toThrow(RedisUrlNotSupported);
  });

  test('no error repeats a password', () => {
    for (const url of ['http://u:geheim@h', 'redis://u:geheim@h:port', 'redis-sentinel://u:geheim@h', 'redis-cluster://u:geheim@h:0', 'redis-cluster://u:geheim%zz@h']) {
      expect(() => parseRedisUrl(url)).toThrow(/^(?!.*geheim)/);
    }
  });

  test('several servers have ports, IPv6 addresses and credentials of their own', () => {
    expect(parseRedisUrl('redis-sentinel://us%40er:p%3Aw@h1,[::1]:5000/my%20master')).toEqual({
      type: 'sentinel', sentinels: [{ host: 'h1', port: 26_379 }, { host: '::1', port: 5000 }], master: 'my master', credentials: { username: 'us@er', password: 'p:w' },
    });
    expect(parseRedisUrl('redis-cluster://:pw@h1,h2:7000/')).toEqual({
      type: 'cluster', nodes: [{ host: 'h1', port: 6379 }, { host: 'h2', port: 7000 }], credentials: { password: 'pw' },
    });
  });

  test.each(['api', 'fleet'] as const)('of the role %s fail fast while Redis is away, and work again afterwards', async (role) => {
    const redis = connectRedis(server.url, { role });
    await vi.waitFor(async () => { await redis.ping(); });
    await server.kill();
    const before = performance.now();
    await expect(redis.ping()).rejects.toThrow();
    await expect(redis.ping()).rejects.toThrow();
    expect(performance.now() - before).toBeLessThan(2500);
    await server.restart();
    await vi.waitFor(async () => { expect(await redis.ping()).toBe('PONG'); }, 5000);
    redis.disconnect();
  });

  test('a worker’s waits for Redis', async () => {
    const redis = connectRedis(server.url, { role: 'command' });
    await redis.ping();
    await server.kill();
    const answer = redis.ping();
    await server.restart();
    expect(await answer).toBe('PONG');
    redis.disconnect();
  });
});

describe('the clock', () => {
  test('is Redis’, to a few milliseconds, and never goes back', async () => {
    const redis = connectRedis(server.url, { role: 'command' });
    const clock = await createRedisClock(redis);
    const [seconds, micros] = await redis.time();
    expect(Math.abs(clock.nowMs() - (Number(seconds) * 1000 + Number(micros) / 1000))).toBeLessThan(50);
    let last = 0;
    for (let i = 0; i < 50; i++) {
      await clock.refresh();
      const now = clock.nowMs();
      expect(now).toBeGreaterThanOrEqual(last);
      last = now;
    }
    redis.disconnect();
  });

  test('stands still where Redis’ clock turns out to be behind', async () => {
    const times = [['2000', '0'], ['1000', '0']];
    const clock = await createRedisClock({ time: async () => times.shift()! } as never);
    const before = clock.nowMs();
    await clock.refresh();
    expect(clock.nowMs()).toBe(before);
  });
});

describe('inspection', () => {
  const good = { version: '7.0.15', appendonly: 'yes', appendfsync: 'always', no_appendfsync_on_rewrite: 'no', maxmemory_policy: 'noeviction' };

  test('reads what a server is set to', async () => {
    const redis = connectRedis(server.url, { role: 'command' });
    await redis.config('SET', 'maxmemory-policy', 'allkeys-lru');
    const found = await inspectRedis(redis);
    expect(found).toMatchObject({ appendonly: 'yes', appendfsync: 'everysec', no_appendfsync_on_rewrite: 'no', maxmemory_policy: 'allkeys-lru' });
    expect(found.version).toMatch(/^\d+\.\d+/);
    expect(found.problems.map(({ severity, mend }) => [severity, mend])).toEqual([
      ['error', 'CONFIG SET maxmemory-policy noeviction'], ['warning', 'CONFIG SET appendfsync always'],
    ]);
    redis.disconnect();
  });

  test('finds nothing wrong with what we ship', () => {
    expect(problemsOf(good)).toEqual([]);
  });

  test('says what is lost where CONFIG may not be asked', async () => {
    const redis = connectRedis(server.url, { role: 'command' });
    await redis.acl('SETUSER', 'plain', 'on', 'nopass', '~*', '+@all', '-config');
    const plain = connectRedis(server.url.replace('redis://', 'redis://plain:x@'), { role: 'command' });
    const found = await inspectRedis(plain);
    expect(found).toMatchObject({ appendonly: 'yes', appendfsync: null, maxmemory_policy: 'noeviction' });
    expect(found.problems).toHaveLength(1);
    redis.disconnect();
    plain.disconnect();
  });

  test('refuses in words where INFO may not be asked', async () => {
    const redis = connectRedis(server.url, { role: 'command' });
    await redis.acl('SETUSER', 'narrow', 'on', 'nopass', '~*', '+@all', '-@dangerous');
    const narrow = connectRedis(server.url.replace('redis://', 'redis://narrow:x@'), { role: 'command' });
    expect((await inspectRedis(narrow)).problems[0]).toMatchObject({ severity: 'error', problem: expect.stringContaining('INFO') as string });
    redis.disconnect();
    narrow.disconnect();
  });

  test.each([
    [{ version: '6.0.9' }, 'error', /too old/],
    [{ maxmemory_policy: 'volatile-lru' }, 'error', /evicted/],
    [{ appendonly: 'no' }, 'warning', /restart of Redis loses every run/],
    [{ appendfsync: 'no' }, 'warning', /30 seconds/],
    [{ no_appendfsync_on_rewrite: 'yes' }, 'warning', /rewrite/],
    [{ appendonly: null }, 'warning', /cannot be seen/],
  ] as const)('%j is a problem', (change, severity, problem) => {
    const problems = problemsOf({ ...good, ...change });
    expect(problems).toHaveLength(1);
    expect(problems[0]).toMatchObject({ severity, problem: expect.stringMatching(problem) as string });
    expect(problems[0]!.mend).not.toBe('');
  });
});
