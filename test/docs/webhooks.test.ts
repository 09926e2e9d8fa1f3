/** The guide docs/webhooks.md does what it says: its receiver verifies what its configuration lets through, told by the built-in agent's run. */
import { spawn, type ChildProcess } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { freePort } from '@treadle/testkit';
import { afterAll, expect, test } from 'vitest';
import { root, startStage, until } from '../e2e/processes.ts';

const guide = readFileSync(join(root, 'docs/webhooks.md'), 'utf8');
const block = (language: string): string => new RegExp(`\`\`\`${language}\\n([^]*?)\`\`\``).exec(guide)![1]!;
// Inside of the project, where both find their packages.
mkdirSync(join(root, 'dist'), { recursive: true });
const dir = mkdtempSync(join(root, 'dist/webhooks-'));
let receiver: ChildProcess | null = null;
afterAll(() => {
  receiver?.kill();
  rmSync(dir, { recursive: true, force: true });
});

test('its receiver is told of a run, by its configuration, with a secret as it makes one', async () => {
  const port = await freePort();
  const moved = (text: string): string => {
    expect(text).toContain('9999');
    return text.replaceAll('9999', String(port));
  };
  writeFileSync(join(dir, 'receiver.mjs'), moved(block('js')));
  writeFileSync(join(dir, 'treadle.config.ts'), moved(block('ts')).replace('`${import.meta.dirname}/docs`', JSON.stringify(join(root, 'docs'))));
  const secret = { TREADLE_WEBHOOK_SECRET: `whsec_${Buffer.alloc(32, 7).toString('base64')}` };
  let told = '';
  receiver = spawn(process.execPath, [join(dir, 'receiver.mjs')], { env: { ...process.env, ...secret }, stdio: ['ignore', 'pipe', 'inherit'] });
  receiver.stdout!.on('data', (chunk: Buffer) => { told += chunk.toString(); });
  const stage = await startStage({ model: {}, env: { ...secret, TREADLE_CONFIG: join(dir, 'treadle.config.ts'), TREADLE_WEBHOOK_RETRY_MS: '100' } });
  try {
    await stage.startWorker();
    const { id } = await stage.client.createRun({ input: 'Which limit bounds a tool result?', webhook: `http://127.0.0.1:${port}/hooks/treadle` });
    await until('the receiver is told', () => told.includes('\n'));
    expect(told).toMatch(new RegExp(`^run\\.completed ${id} `));
    const forged = await fetch(`http://127.0.0.1:${port}/`, { method: 'POST', body: '{}', headers: { 'webhook-id': 'msg_1', 'webhook-timestamp': String(Math.floor(Date.now() / 1000)), 'webhook-signature': 'v1,AAAA' } });
    expect(forged.status).toBe(400);
  } finally {
    await stage.stop();
  }
}, 60_000);
