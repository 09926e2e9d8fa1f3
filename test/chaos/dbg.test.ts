import { setTimeout as sleep } from 'node:timers/promises';
import { test } from 'vitest';
import { postRuns, startChaos, usualScript } from './stage.ts';
test('dbg', async () => {
  const t0 = Date.now();
  const say = (...x: unknown[]) => process.stdout.write(`${Date.now() - t0} ${x.map((y) => typeof y === 'string' ? y : JSON.stringify(y)).join(' ')}\n`);
  const here = await startChaos({ script: (body) => { const r = usualScript(body); return { ...r, delivery: { delayMs: 500 } } as typeof r; }, redis: { appendfsync: 'everysec', args: ['--aof-timestamp-enabled', 'yes'] }, env: { ARCHIVE_MODE: process.env['CMODE'] ?? 'async' } });
  await here.workers.start(2);
  say('started');
  const posted = await postRuns(here, ['a', 'b', 'c', 'd']);
  say('posted');
  await sleep(2500);
  say('model requests', here.model.requests.length);
  await here.redis.rewind(Math.floor(Date.now() / 1000) - 1);
  say('rewound');
  for (let i = 0; i < 10; i++) {
    await sleep(1500);
    const runs = await Promise.all(posted.map(({ id }) => here.client.run(id).then((r) => [r.status, r.last_seq, r['archived_seq'], r.stop_reason], String)));
    say(runs, here.model.requests.length);
  }
  say(here.workers.roles.map((r) => r.output().slice(-3000)).join('\n----\n'));
  await here.stop();
}, 60_000);
