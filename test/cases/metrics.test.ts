/** However many tenants, runs and inventions there are, the metrics pages stay small and name none of them. */
import { createHash } from 'node:crypto';
import { writeFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ApiError, createClient } from '@treadle/client';
import { reply, text } from '@treadle/testkit';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startStage, type Role, type Stage } from '../e2e/processes.ts';

const tenants = Array.from({ length: 200 }, (_, index) => `tenant-${index}`);
const models = Array.from({ length: 20 }, (_, index) => `model-${index}`);
const inventedPerRun = 2;

let dir: string;
let stage: Stage;
let workers: Role[];
let invented = 0;

beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), 'treadle-c70-'));
  const keysFile = join(dir, 'keys.json');
  writeFileSync(keysFile, JSON.stringify(tenants.map((tenant) => ({ key_sha256: createHash('sha256').update(`tk_of_${tenant}`).digest('hex'), tenant, scopes: ['write', 'read'] }))));
  stage = await startStage({
    model: { strict: false, script: (body) => {
      if ((body.messages ?? []).some((message) => message.role === 'tool')) return text('done');
      return reply({ calls: [...Array.from({ length: inventedPerRun }, () => ({ id: null, name: `invented_${invented++ % 300}`, args: {} })), { id: null, name: 'test__add', args: { a: 1, b: 2 } }] });
    } },
    config: (url) => ({
      models: Object.fromEntries(models.map((name) => [name, { provider: 'ollama', model: name, base_url: url, context_window: 32_768, max_output_tokens: 1024 }])),
      chains: Object.fromEntries(models.map((name) => [`chain-of-${name}`, { models: [name] }])),
      agents: Object.fromEntries(models.map((name) => [`agent-of-${name}`, { instructions: 'Test.', chain: `chain-of-${name}`, tools: ['test/*'] }])),
    }),
    env: { TREADLE_AUTH: 'keys', TREADLE_ADMIN_KEY: 'tk_admin_c70', TREADLE_KEYS_FILE: keysFile, WORKER_CONCURRENCY: '25' },
  });
  workers = await Promise.all([stage.startWorker(), stage.startWorker()]);
});
afterAll(async () => {
  await stage.stop();
  rmSync(dir, { recursive: true, force: true });
});

test('C70: runs of 200 tenants with 300 invented tool names over 20 models: fewer than 2,000 series and 1 MB a page, and no id, tenant or invented name in a label', async () => {
  const ended = await Promise.all(tenants.map(async (tenant, index) => {
    const client = createClient({ url: stage.api.url, apiKey: `tk_of_${tenant}` });
    // Of 200 at once on a busy machine some are not answered in time: asked again as the answer says, they are the same run.
    const ask = () => client.createRun({ agent: `agent-of-${models[index % models.length]!}`, input: `go ${tenant}`, tags: [`tag-of-${tenant}`] }, { idempotencyKey: tenant });
    const again = (error: unknown) => error instanceof ApiError && error.code === 'outcome_unknown' ? ask() : Promise.reject(error as Error);
    const { id } = await ask().catch(again).catch(again);
    return client.wait(id, 120_000);
  }));
  expect(ended.filter((run) => run.status !== 'completed')).toEqual([]);
  expect(invented).toBeGreaterThanOrEqual(300);

  let unnamed = 0;
  const taken: string[] = [];
  for (const { url } of [stage.api, ...workers]) {
    const page = await (await fetch(`${url}/metrics`)).text();
    const series = page.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
    expect(series.length, url).toBeLessThan(2000);
    expect(Buffer.byteLength(page), url).toBeLessThan(1_000_000);
    taken.push(...series.filter((line) => /run_[0-9a-f]|ses_[0-9a-f]|tenant-|invented|tag-of/.test(line)));
    unnamed += Number(/treadle_tool_calls_total\{tool="other",outcome="error"\} (\d+)/.exec(page)?.[1] ?? 0);
  }
  expect(taken).toEqual([]);
  // They were all counted, under one name.
  expect(unnamed).toBe(tenants.length * inventedPerRun);
}, 180_000);
