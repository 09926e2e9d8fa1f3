/**
 * Twelve secrets, each of them said aloud by whoever is given it: they are nowhere in what the system writes, stores, shows or answers.
 */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createHash } from 'node:crypto';
import { writeFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createClient } from '@treadle/client';
import { refusal, reply, startRedis, startS3Server, type S3Server } from '@treadle/testkit';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startStage, treadle, until, type Role, type Stage } from '../e2e/processes.ts';

const secrets = {
  model_key: 'sk-model-first-1f6c', model_key_written: 'sk-model-second-2a9d', mcp_env: 'mcp-env-secret-3b77', mcp_env_written: 'mcp-written-secret-4c58', header_token: 'header-token-5d1e',
  header_written: 'header-written-6e42', s3_id: 'S3KEYID7F93AB', s3_secret: 's3/secret+8a0b=', redis: 'redis p@ss/word-9b3c', admin: 'tk_admin_ac4d51', tenant: 'tk_tenant_bd5e62', unknown: 'tk_unknown_ce6f73',
} as const;
/** As they may be written. */
const forms = Object.entries(secrets).flatMap(([name, value]) => [...new Set([value, encodeURIComponent(value), JSON.stringify(value).slice(1, -1), Buffer.from(value).toString('base64')])].map((form) => [name, form] as const));

let dir: string;
let s3: S3Server;
let echo: Server;
let stage: Stage;
let worker: Role;
let heard: string;

beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), 'treadle-secrets-'));
  heard = '';
  echo = createServer((request, response) => {
    heard += JSON.stringify(request.headers);
    response.writeHead(request.url === '/bad' ? 500 : 200, { 'content-type': 'application/json' }).end(JSON.stringify(request.headers));
  });
  await new Promise<void>((resolve) => { echo.listen(0, '127.0.0.1', resolve); });
  const at = `http://127.0.0.1:${(echo.address() as AddressInfo).port}`;
  s3 = await startS3Server();
  const keysFile = join(dir, 'keys.json');
  writeFileSync(keysFile, JSON.stringify([{ key_sha256: createHash('sha256').update(secrets.tenant).digest('hex'), tenant: 'acme', scopes: ['write', 'read'] }]));
  const guarded = async () => {
    const server = await startRedis();
    const redis = new Redis(server.url);
    await redis.config('SET', 'requirepass', secrets.redis);
    redis.disconnect();
    return { ...server, url: server.url.replace('redis://', `redis://:${encodeURIComponent(secrets.redis)}@`), stop: () => server.stop() };
  };
  stage = await startStage({
    redis: guarded,
    model: { strict: false, script: (body, _index, _dialect, headers) => {
      heard += JSON.stringify(headers);
      const results = (body.messages ?? []).filter((message) => message.role === 'tool').length;
      if (JSON.stringify(body.messages).includes('refuse me')) return refusal(400, `what you sent is wrong: ${JSON.stringify(headers)}`);
      const call = (name: string, args = {}) => reply({ calls: [{ id: null, name, args }] });
      return [call('leaky__tell'), call('leaky__fail'), call('good'), call('bad')][results] ?? reply({ text: 'done' });
    } },
    config: (url) => ({
      models: {
        small: { provider: 'ollama', model: 'fake', base_url: url, credentials: ['env:PLANTED_MODEL_KEY'], context_window: 200_000, max_output_tokens: 1024 },
        big: { provider: 'ollama', model: 'fake-big', base_url: url, credentials: [secrets.model_key_written], context_window: 200_000, max_output_tokens: 1024 },
      },
      chains: { default: { models: ['small', 'big'] } },
      mcp_servers: { leaky: { command: process.execPath, args: [join(import.meta.dirname, 'fixtures/leaky-server.ts')], env: { ANY: 'env:PLANTED_MCP', API_TOKEN: secrets.mcp_env_written } } },
      http_tools: {
        good: { url: `${at}/good`, headers: { authorization: 'env:PLANTED_HEADER' }, description: 'Tells.' },
        bad: { url: `${at}/bad`, headers: { 'x-api-key': secrets.header_written }, description: 'Fails.' },
      },
      egress: { allow: [at, url] },
      agents: { tester: { instructions: 'Test.', chain: 'default', tools: ['leaky/*', 'good', 'bad'] } },
    }),
    env: {
      LOG_LEVEL: 'trace', PLANTED_MODEL_KEY: secrets.model_key, PLANTED_MCP: secrets.mcp_env, PLANTED_HEADER: `Bearer ${secrets.header_token}`, TREADLE_AUTH: 'keys', TREADLE_ADMIN_KEY: secrets.admin, TREADLE_KEYS_FILE: keysFile,
      S3_BUCKET: s3.bucket, S3_ENDPOINT: s3.endpoint, S3_ACCESS_KEY_ID: secrets.s3_id, S3_SECRET_ACCESS_KEY: secrets.s3_secret,
    },
  });
  worker = await stage.startWorker();
});
afterAll(async () => {
  await stage.stop();
  await s3.stop();
  await new Promise((resolve) => { echo.close(resolve); });
  rmSync(dir, { recursive: true, force: true });
});

/** Everything that Redis has, as text. */
async function dump(url: string): Promise<string> {
  const redis = new Redis(url);
  const read = async (key: string): Promise<unknown> => {
    switch (await redis.type(key)) {
      case 'string': return redis.get(key);
      case 'hash': return redis.hgetall(key);
      case 'list': return redis.lrange(key, 0, -1);
      case 'zset': return redis.zrange(key, 0, '-1');
      case 'stream': return redis.xrange(key, '-', '+');
      default: return redis.smembers(key);
    }
  };
  try {
    const keys = await redis.keys('*');
    return JSON.stringify(await Promise.all(keys.map(async (key) => [key, await read(key)])));
  } finally {
    redis.disconnect();
  }
}

test('twelve secrets are in no log, event, error, metric or answer, not in Redis and not in the archive', async () => {
  const { api, env } = stage;
  const clients = [secrets.tenant, secrets.admin].map((apiKey) => createClient({ url: api.url, apiKey }));
  const shown: Record<string, string> = {};
  for (const [index, client] of clients.entries()) {
    for (const input of ['say all', 'refuse me']) {
      const { id } = await client.createRun({ agent: 'tester', input });
      const run = await client.wait(id, 60_000);
      expect(run.status).toBe(input === 'say all' ? 'completed' : 'failed');
      const events: unknown[] = [];
      for await (const event of client.events(id)) events.push(event);
      shown[`events ${index} ${input}`] = JSON.stringify(events);
      shown[`run ${index} ${input}`] = JSON.stringify([run, await client.get(`/v1/runs/${id}/messages`), await client.get(`/v1/runs/${id}/ledger`)]);
      await until('it is archived', async () => (await client.run(id))['archived_seq'] === run.last_seq);
    }
  }
  const headers = { authorization: `Bearer ${secrets.unknown}` };
  shown['refused'] = await (await fetch(`${api.url}/v1/runs`, { headers })).text();
  for (const path of ['/v1/agents', '/v1/models', '/v1/chains', '/v1/breakers', '/v1/workers', '/v1/runs?limit=10']) shown[path] = JSON.stringify(await clients[1]!.get(path));
  for (const path of ['/metrics', '/readyz', '/openapi.json', '/docs', '/']) shown[path] = await (await fetch(api.url + path)).text();
  for (const path of ['/metrics', '/readyz']) shown[`worker ${path}`] = await (await fetch(worker.url + path)).text();
  const doctor = await treadle(['doctor'], { env });
  shown['doctor'] = doctor.stdout + doctor.stderr;
  shown['Redis'] = await dump(stage.redis.url);
  shown['archive'] = [...s3.objects].map(([key, object]) => `${key} ${Buffer.from(object).toString('latin1')}`).join('\n');
  shown['API log'] = api.output();
  shown['worker log'] = worker.output();

  // What is looked for was really said, and what is looked through has something in it.
  for (const name of ['model_key', 'model_key_written', 'header_token', 'header_written'] as const) expect(heard, name).toContain(secrets[name]);
  expect(shown['events 0 say all']).toMatch(/I was given .*\[redacted\]/);
  expect(shown['events 0 refuse me']).toContain('what you sent is wrong');
  for (const [place, text] of Object.entries(shown)) expect(text.length, place).toBeGreaterThan(10);
  const found = Object.entries(shown).flatMap(([place, text]) => forms.filter(([, form]) => text.includes(form)).map(([name]) => `${name} in ${place}`));
  expect(found).toEqual([]);
}, 120_000);
