/** The embedded Redis keeps what it has answered: the settings that a killed machine would show the lack of. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connectRedis, inspectRedis } from '@treadle/run-store';
import { expect, test } from 'vitest';
import { startRedis } from './redis-process.ts';

test('the embedded Redis fsyncs every write before it answers, and has no fault that doctor would tell of', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'treadle-redis-'));
  const server = await startRedis(dir, () => undefined);
  const redis = connectRedis(server.url, { role: 'command' });
  try {
    const found = await inspectRedis(redis);
    expect(found).toMatchObject({ appendonly: 'yes', appendfsync: 'always', no_appendfsync_on_rewrite: 'no', maxmemory_policy: 'noeviction' });
    expect(found.problems).toEqual([]);
  } finally {
    redis.disconnect();
    await server.stop();
    rmSync(dir, { recursive: true });
  }
});
