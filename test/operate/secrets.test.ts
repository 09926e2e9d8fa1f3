/**
 * R28: twenty secrets, each said aloud by whoever is given it, in thirty-three situations in which something goes wrong: they are nowhere in what
 * the system writes, stores, shows, answers or sends on. All of them are there in every situation; what each has brought is searched at the end.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createHash } from 'node:crypto';
import { writeFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createClient, type Client, type RunRequest } from '@treadle/client';
import { cut, raw, reply, startRedis, startS3Server, status, text, type S3Server, type ScriptedReply } from '@treadle/testkit';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { startStage, treadle, until, type Role, type Stage } from '../e2e/processes.ts';
import { webhookSecret } from '../cases/receiver.ts';
import { pagesText, redisText, runText } from '../e2e/shown.ts';

// They wait more than they work.
vi.setConfig({ maxConcurrency: 12 });

const secrets = {
  model_key: 'sk-model-first-1f6c', model_key_written: 'sk-model-second-2a9d', mcp_env: 'mcp-env-secret-3b77', mcp_env_written: 'mcp-written-secret-4c58', mcp_header: 'mcp-header-secret-0d12',
  header_token: 'header-token-5d1e', header_written: 'header-written-6e42', query: 'query-secret-0e23', s3_id: 'S3KEYID7F93AB', s3_secret: 's3/secret+8a0b=', redis: 'redis p@ss/word-9b3c',
  webhook: webhookSecret('1'), webhook_previous: webhookSecret('2'), webhook_endpoint: webhookSecret('3'), webhook_written: webhookSecret('4'), webhook_header: 'webhook-header-7e01', webhook_query: 'webhook-query-8f12',
  admin: 'tk_admin_ac4d51', tenant: 'tk_tenant_bd5e62', collector: 'collector-secret-0f34',
} as const;
/** Of somebody who asks with a key that nobody has given out. */
const unknownKey = 'tk_unknown_ce6f73';
/** Keys that the API has issued, with what they are called. */
const issuedKeys: [string, string][] = [];
/** As they may be written. */
const formsOf = (all: readonly (readonly [name: string, value: string])[]): (readonly [name: string, form: string])[] => all.flatMap(([name, value]) => [...new Set([value, encodeURIComponent(value), JSON.stringify(value).slice(1, -1), Buffer.from(value).toString('base64'), value.replace('whsec_', ''), value.startsWith('whsec_') ? Buffer.from(value.slice(6), 'base64').toString() : value])].map((form) => [name, form] as const));

interface Situation {
  /** How it is told: `model` begins a run whose only model does this, `tool` one that calls this tool, `act` does something else. Answers what was shown. */
  readonly model?: (headers: string) => ScriptedReply | 'away';
  readonly tool?: string;
  readonly act?: () => Promise<string>;
  /** What is to be found in what it has shown: that it has happened. */
  readonly shows: RegExp;
}

const page = (headers: string): string => `<html><body><pre>${headers}</pre></body></html>`;
/** Sent in the clear by one who asks with it. */
const as = (key: string): Record<string, string> => ({ authorization: `Bearer ${key}`, 'content-type': 'application/json' });

const situations: Readonly<Record<string, Situation>> = {
  'a model says that the key is wrong': { model: (headers) => status(401, {}, { error: `no such key: ${headers}` }), shows: /auth_invalid/ },
  'a model says that the key may not': { model: (headers) => status(403, {}, { error: `forbidden: ${headers}` }), shows: /"type":"error"/ },
  'a model says that the request is wrong': { model: (headers) => status(400, {}, { error: `what you sent is wrong: ${headers}` }), shows: /invalid_request/ },
  'a model says that it is not there': { model: (headers) => status(404, {}, { error: `model not found: ${headers}` }), shows: /"type":"error"/ },
  'a model says that this is too much': { model: (headers) => status(413, {}, { error: `too large: ${headers}` }), shows: /payload_too_large/ },
  'a model says that this is too often': { model: (headers) => status(429, { 'retry-after': '1' }, { error: `slow down: ${headers}` }), shows: /"type":"error"/ },
  'a model breaks with a page': { model: (headers) => status(500, { 'content-type': 'text/html' }, page(headers)), shows: /server_error/ },
  'a model is overloaded': { model: (headers) => status(503, { 'x-echo': headers }, { error: `overloaded: ${headers}` }), shows: /overloaded|server_error/ },
  'a model sends one elsewhere': { model: (headers) => status(302, { location: `/login?${encodeURIComponent(headers)}` }, page(headers)), shows: /"type":"error"/ },
  'a model says in the middle that it broke': { model: (headers) => raw([`${JSON.stringify({ message: { content: 'well' }, done: false })}\n`, `${JSON.stringify({ error: `broken: ${headers}` })}\n`]), shows: /"type":"error"/ },
  'a model answers what is no reply': { model: (headers) => raw([page(headers)]), shows: /"type":"error"/ },
  'a model hangs up': { model: () => cut({ afterBytes: 20 }), shows: /"type":"error"/ },
  'a model is not there': { model: () => 'away', shows: /connect_failed/ },
  'a tool tells what it was sent': { tool: 'good', shows: /\[redacted\]/ },
  'a tool says that the key is wrong': { tool: 'refused', shows: /401/ },
  'a tool breaks with a page': { tool: 'broken', shows: /500/ },
  'a tool sends one elsewhere': { tool: 'elsewhere', shows: /302/ },
  'a tool hangs up': { tool: 'cut', shows: /"is_error":true/ },
  'a tool takes too long': { tool: 'hanging', shows: /"is_error":true/ },
  'a tool repeats its address': { tool: 'asked', shows: /asked\?k=\[redacted\]/ },
  'a tool is not there': { tool: 'absent', shows: /ECONNREFUSED/ },
  'a server of tools tells what it was given': { tool: 'leaky__tell', shows: /I was given .*\[redacted\]/ },
  'a server of tools fails with it': { tool: 'leaky__fail', shows: /"is_error":true/ },
  'a server of tools throws it': { tool: 'leaky__throw', shows: /failed with .*\[redacted\]/ },
  'a server of tools dies with it': { tool: 'leaky__die', shows: /"is_error":true/ },
  'servers of tools cannot be started, or refuse us': { tool: 'good', shows: /stillborn[^]*unfriendly|unfriendly[^]*stillborn/ },
  'a receiver of webhooks refuses, and repeats what it was sent': { act: () => told({ endpoint: 'refusing' }, 'the receiver answered 401'), shows: /"endpoint":"refusing"/ },
  'receivers of webhooks are not there, or not to be reached': {
    act: async () => (await Promise.all([told({ endpoint: 'absent' }, 'ECONNREFUSED'), told({ endpoint: 'inside' }, 'not a public address'), told(`${at}/refused`, 'the receiver answered 401')])).join('\n'), shows: /"endpoint":"absent"[^]*"endpoint":"inside"/,
  },
  'somebody comes with a key that nobody knows': {
    act: async () => {
      const body = JSON.stringify({ agent: 'tester', input: unknownKey });
      const answers = [fetch(`${stage.api.url}/v1/runs`, { method: 'POST', headers: as(unknownKey), body }), fetch(`${stage.api.url}/v1/runs?key=${unknownKey}`), fetch(`${stage.api.url}/${unknownKey}`), fetch(`${stage.api.url}/queues`, { headers: { authorization: `Basic ${Buffer.from(`x:${unknownKey}`).toString('base64')}` } })];
      return (await Promise.all((await Promise.all(answers)).map((answer) => answer.text()))).join('\n');
    },
    shows: /unauthorized/,
  },
  'keys are issued, used, misused and revoked': {
    act: async () => {
      const [backend, other] = [await admin.createKey({ name: 'backend', tenant: 'acme' }), await admin.createKey({ name: 'other', scopes: ['read'] })];
      issuedKeys.push(['issued', backend.key], ['revoked', other.key]);
      const run = await ran(createClient({ url: stage.api.url, apiKey: backend.key }), backend.key, { agent: 'tester', input: 'use good' });
      const ask = async (key: string, path: string, init: RequestInit = {}) => (await fetch(`${stage.api.url}${path}`, { ...init, headers: as(key) })).text();
      const misused = [await ask(other.key, '/v1/keys'), await ask(other.key, '/v1/runs', { method: 'POST', body: '{"input":"x"}' }), await ask(backend.key, `/v1/keys/${other.id}`, { method: 'DELETE' })];
      await admin.revokeKey(other.id);
      const listed = await treadle(['keys', 'ls'], { env: { TREADLE_URL: stage.api.url, TREADLE_API_KEY: secrets.admin } });
      return [run, ...misused, await ask(other.key, '/v1/runs'), listed.stdout, listed.stderr].join('\n');
    },
    shows: /"status":"completed"[^]*forbidden[^]*unauthorized[^]*key_[0-9a-f]{32} {2}acme {2}read,write {2}never expires {2}backend/,
  },
  'somebody sends what cannot be taken': {
    act: async () => {
      const answers = [`{"agent": "${secrets.admin}`, JSON.stringify({ input: 'x', [secrets.admin]: 1 }), JSON.stringify({ input: 'x', tags: [1] })].map((body) => fetch(`${stage.api.url}/v1/runs`, { method: 'POST', headers: as(secrets.admin), body }));
      // What somebody writes into a field's name comes back to them, and to nobody else.
      return (await Promise.all((await Promise.all(answers)).map((answer) => answer.text()))).join('\n').replaceAll(secrets.admin, '(said by the asker)');
    },
    shows: /invalid_json[^]*invalid_request/,
  },
  'the archive refuses and breaks': {
    act: async () => {
      s3.failNext(20, 403);
      // One run alone would come back every few seconds, and be refused once each time.
      await Promise.all(Array.from({ length: 10 }, async () => {
        const { id } = await admin.createRun({ agent: 'tester', input: 'use good' });
        await admin.wait(id, 60_000);
      }));
      await until('it is said', () => /archive|duty/.test(worker.output()) && s3.pending() === 0, 90_000);
      return worker.output();
    },
    shows: /403|InvalidAccessKeyId|archive/,
  },
  'Redis and the settings are wrong': {
    act: async () => {
      const wrong = [{ REDIS_URL: stage.redis.url.replace(encodeURIComponent(secrets.redis), encodeURIComponent(`${secrets.redis}x`)) }, { TREADLE_ADMIN_KEY: `${secrets.admin} and more` }, { OTEL_EXPORTER_OTLP_HEADERS: secrets.collector }, { PLANTED_0: '' }];
      const said = await Promise.all(wrong.map((env) => treadle(['doctor'], { env: { ...stage.env, ...env } })));
      expect(said.map(({ code }) => code === 0)).toEqual([false, false, false, false]);
      return said.map(({ stdout, stderr }) => stdout + stderr).join('\n');
    },
    shows: /TREADLE_ADMIN_KEY: expected[^]*OTEL_EXPORTER_OTLP_HEADERS: expected/,
  },
};

const modelled = Object.entries(situations).filter(([, situation]) => situation.model !== undefined);
/** Of the models' keys every second one comes from the environment; each has an end of its own, so that none is benched for another. */
const keyOf = (index: number): string => index % 2 === 0 ? `env:PLANTED_${index}` : `${secrets.model_key_written}-${index}`;

let dir: string;
let s3: S3Server;
let elsewhere: Server;
let at: string;
let stage: Stage;
let worker: Role;
let admin: Client;
let tenant: Client;
let heard = '';
let webhookBodies = '';
const shown: Record<string, string> = {};

/** Whoever is asked for something here repeats what it was sent, as far as it says anything. */
function echo(request: IncomingMessage, response: ServerResponse): void {
  const sent = JSON.stringify({ url: request.url, ...request.headers });
  heard += sent;
  if (request.headers['webhook-id'] !== undefined) request.on('data', (part: Buffer) => { webhookBodies += part.toString(); });
  const path = (request.url ?? '/').split('?')[0];
  if (path === '/hanging') return;
  if (path === '/cut') {
    response.writeHead(200, { 'content-type': 'application/json' }).write(sent, () => { response.destroy(); });
    return;
  }
  const code = { '/refused': 401, '/broken': 500, '/elsewhere': 302, '/mcp': 401, '/v1/traces': 401 }[path ?? ''] ?? 200;
  response.writeHead(code, { 'content-type': 'application/json', 'x-echo': sent, ...(code === 302 ? { location: `/login?was=${encodeURIComponent(sent)}` } : {}) }).end(sent);
}

beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), 'treadle-secrets-'));
  elsewhere = createServer(echo);
  await new Promise<void>((resolve) => { elsewhere.listen(0, '127.0.0.1', resolve); });
  at = `http://127.0.0.1:${(elsewhere.address() as AddressInfo).port}`;
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
  const planted = Object.fromEntries(modelled.flatMap((_, index) => index % 2 === 0 ? [[`PLANTED_${index}`, `${secrets.model_key}-${index}`]] : []));
  stage = await startStage({
    redis: guarded,
    model: { strict: false, script: (body, _index, _dialect, headers) => {
      const sent = JSON.stringify(headers);
      heard += sent;
      const situation = modelled[Number(/^fake-(\d+)$/.exec(body.model ?? '')?.[1])]?.[1];
      const made = situation?.model?.(sent);
      if (made !== undefined && made !== 'away') return made;
      const messages = body.messages ?? [];
      const name = /^use (\S+)/.exec(String(messages.find((message) => message.role === 'user')?.content))?.[1];
      return name === undefined || messages.some((message) => message.role === 'tool') ? text('done') : reply({ calls: [{ id: null, name, args: {} }] });
    } },
    config: (url) => configFor(url),
    env: {
      ...planted, LOG_LEVEL: 'trace', PLANTED_MCP: secrets.mcp_env, PLANTED_HEADER: `Bearer ${secrets.header_token}`, PLANTED_MCP_HEADER: `Bearer ${secrets.mcp_header}`, PLANTED_URL: `${at}/asked?k=${secrets.query}`,
      TREADLE_WEBHOOK_SECRET: secrets.webhook, TREADLE_WEBHOOK_PREVIOUS_SECRET: secrets.webhook_previous, PLANTED_WEBHOOK: secrets.webhook_endpoint,
      TREADLE_AUTH: 'keys', TREADLE_ADMIN_KEY: secrets.admin, TREADLE_KEYS_FILE: keysFile, TREADLE_BREAKER_VOLUME: '1000000',
      S3_BUCKET: s3.bucket, S3_ENDPOINT: s3.endpoint, S3_ACCESS_KEY_ID: secrets.s3_id, S3_SECRET_ACCESS_KEY: secrets.s3_secret,
      OTEL_EXPORTER_OTLP_ENDPOINT: at, OTEL_EXPORTER_OTLP_HEADERS: `x-api-key=${secrets.collector}`, OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT: 'true', OTEL_BSP_SCHEDULE_DELAY: '100', OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
    },
  });
  [admin, tenant] = [secrets.admin, secrets.tenant].map((apiKey) => createClient({ url: stage.api.url, apiKey })) as [Client, Client];
  worker = await stage.startWorker();
});

function configFor(url: string): Record<string, unknown> {
  const model = (name: string, credentials: string[], base_url = url) => ({ provider: 'ollama', model: name, base_url, credentials, context_window: 200_000, max_output_tokens: 1024 });
  const tools = ['good', 'refused', 'broken', 'elsewhere', 'cut', 'hanging'];
  const agent = { instructions: 'Test.' };
  return {
    models: {
      small: model('fake', [secrets.model_key_written]),
      ...Object.fromEntries(modelled.map(([, situation], index) => [`m${index}`, model(`fake-${index}`, [keyOf(index)], situation.model?.('') === 'away' ? 'http://127.0.0.1:1' : url)])),
    },
    chains: { default: { models: ['small'] }, ...Object.fromEntries(modelled.map((_, index) => [`c${index}`, { models: [`m${index}`] }])) },
    mcp_servers: {
      leaky: { command: process.execPath, args: [join(import.meta.dirname, 'fixtures/leaky-server.ts')], env: { ANY: 'env:PLANTED_MCP', API_TOKEN: secrets.mcp_env_written } },
      stillborn: { command: process.execPath, args: ['-e', 'process.stderr.write(JSON.stringify(process.env)); process.exit(1)'], env: { ANY: 'env:PLANTED_MCP' } },
      unfriendly: { url: `${at}/mcp`, headers: { authorization: 'env:PLANTED_MCP_HEADER' } },
    },
    http_tools: {
      ...Object.fromEntries(tools.map((name, index) => [name, { url: `${at}/${name}`, headers: index % 2 === 0 ? { authorization: 'env:PLANTED_HEADER' } : { 'x-api-key': secrets.header_written }, description: 'Tells.' }])),
      asked: { url: 'env:PLANTED_URL', description: 'Tells.' }, absent: { url: `http://127.0.0.1:1/absent?token=${secrets.query}`, headers: { authorization: 'env:PLANTED_HEADER' }, description: 'Is not there.' },
    },
    webhooks: {
      refusing: { url: `${at}/refused?token=${secrets.webhook_query}`, secret: 'env:PLANTED_WEBHOOK', previous_secret: secrets.webhook_written, headers: { 'x-api-key': secrets.webhook_header } },
      absent: { url: `http://127.0.0.1:1/absent?token=${secrets.webhook_query}`, secret: secrets.webhook_written }, inside: { url: `http://127.0.0.1:2/?token=${secrets.webhook_query}`, secret: secrets.webhook_written },
    },
    tools: { hanging: { timeout_ms: 500 } },
    egress: { allow: [at, url, 'http://127.0.0.1:1'] },
    agents: {
      tester: { ...agent, chain: 'default', tools: ['leaky/*', 'stillborn/*', 'unfriendly/*', ...tools, 'asked', 'absent'] },
      ...Object.fromEntries(modelled.map((_, index) => [`a${index}`, { ...agent, chain: `c${index}`, tools: [], limits: { max_consecutive_errors: 1 } }])),
    },
  };
}

afterAll(async () => {
  await stage.stop();
  await s3.stop();
  elsewhere.closeAllConnections();
  await new Promise((resolve) => { elsewhere.close(resolve); });
  rmSync(dir, { recursive: true, force: true });
});

/** Answers everything that the API tells of the run. */
async function ran(client: Client, key: string, request: { readonly agent: string; readonly input: string }): Promise<string> {
  const { id } = await client.createRun(request);
  const run = await client.wait(id, 90_000);
  await until('it is archived', async () => (await client.run(id))['archived_seq'] === run.last_seq, 60_000);
  return runText(stage.api.url, id, as(key));
}

/** Answers everything that is told of a run and of what its receiver made of its end. */
async function told(webhook: RunRequest['webhook'] & {}, error: string): Promise<string> {
  const { id } = await admin.createRun({ agent: 'tester', input: 'go', webhook });
  const run = await admin.wait(id, 60_000);
  const page = await until('it has failed', async () => { const found = await admin.deliveries({ run_id: id }); return found.data[0]?.last_error?.includes(error) === true ? found : undefined; }, 60_000);
  await until('it is archived', async () => (await admin.run(id))['archived_seq'] === run.last_seq, 60_000);
  const shown = await treadle(['webhooks', 'ls', '--run', id], { env: { TREADLE_URL: stage.api.url, TREADLE_API_KEY: secrets.admin } });
  return `${JSON.stringify(page)}\n${shown.stdout}${shown.stderr}\n${await runText(stage.api.url, id, as(secrets.admin))}`;
}

describe('R28', () => {
  test.concurrent.each(Object.entries(situations).map(([name, situation], index) => [name, situation, index] as const).filter(([, { act }]) => act === undefined))('%s', async (name, situation, index) => {
    const [client, key] = index % 2 === 0 ? [admin, secrets.admin] : [tenant, secrets.tenant];
    shown[name] = await ran(client, key, situation.tool === undefined ? { agent: `a${modelled.findIndex(([each]) => each === name)}`, input: 'go' } : { agent: 'tester', input: `use ${situation.tool}` });
    expect(shown[name]).toMatch(situation.shows);
  }, 120_000);

  test.each(Object.entries(situations).filter(([, { act }]) => act !== undefined))('%s', async (name, { act, shows }) => {
    shown[name] = await act!();
    expect(shown[name]).toMatch(shows);
  }, 120_000);

  test('of twelve secrets and more in over thirty situations none is in a log, an event, an error, a metric, a trace or an answer, in Redis, in the archive, or in what a model is asked', async () => {
    expect(Object.keys(secrets).length).toBeGreaterThanOrEqual(12);
    expect([Object.keys(situations).length, Object.keys(shown).length]).toEqual([33, 33]);
    for (const [place, said] of Object.entries(await pagesText({ api: stage.api.url, workers: [worker.url] }, as(secrets.admin)))) shown[place] = said;
    shown['doctor'] = Object.values(await treadle(['doctor'], { env: stage.env })).join('\n');
    shown['Redis'] = await redisText(stage.redis.url);
    shown['archive'] = [...s3.objects].map(([key, object]) => `${key} ${Buffer.from(object).toString('latin1')}`).join('\n');
    shown['API log'] = stage.api.output();
    shown['worker log'] = worker.output();
    shown['webhook bodies'] = webhookBodies;
    shown['what models are asked'] = stage.model.requests.map((request) => request.rawBody).join('\n');
    // What is looked for was really said, and what is looked through has something in it.
    for (const name of ['model_key', 'model_key_written', 'mcp_header', 'header_token', 'header_written', 'query', 'collector', 'webhook_header', 'webhook_query'] as const) expect(heard, name).toContain(secrets[name]);
    expect(shown['worker log']).toContain('traces cannot be sent');
    expect(shown['Redis']).toContain(createHash('sha256').update(issuedKeys[0]![1]).digest('hex'));
    expect(shown['archive']).toContain('what you sent is wrong');
    for (const [place, said] of Object.entries(shown)) expect(said.length, place).toBeGreaterThan(10);
    const forms = formsOf([...Object.entries({ ...secrets, unknownKey }), ...issuedKeys]);
    const found = Object.entries(shown).flatMap(([place, said]) => forms.filter(([, form]) => said.includes(form)).map(([name]) => `${name} in ${place}`));
    expect(found).toEqual([]);
  }, 120_000);
});
