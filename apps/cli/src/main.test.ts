/** What a command says, and leaves, when it can do nothing. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connectRedis } from '@treadle/run-store';
import { startModelServer, startRedis, startS3Server, startTcpProxy } from '@treadle/testkit';
import { afterEach, expect, test } from 'vitest';
import { started, type Started } from './fixtures/started.ts';
import { projectRoot } from './setup.ts';
import { nodeFlags } from './stack/node-flags.ts';

const all: Started[] = [];
afterEach(() => { for (const each of all.splice(0)) each.clear(); });

function start(args: readonly string[], env?: Readonly<Record<string, string>>): Started {
  const one = started(args, env);
  all.push(one);
  return one;
}

test.each(['/proc/nothing/here', '/dev/null/data'])('up names a data folder that cannot be made: %s', async (folder) => {
  const one = start(['up', '--data', folder]);
  // It ends at all: node's own recursive mkdir would not.
  expect(await one.exited).toBe(2);
  expect(one.output.stderr).toMatch(new RegExp(`^treadle: --data: the folder ${folder} cannot be made: .+\n$`));
});

test('./treadle starts node as up starts its processes', () => {
  expect(readFileSync(join(projectRoot, 'treadle'), 'utf8')).toContain(`exec node ${nodeFlags.join(' ')} `);
});

test('doctor leaves nothing in the folder where it is asked', async () => {
  const one = start(['doctor']);
  expect([0, 1]).toContain(await one.exited);
  expect(one.output.stdout).toMatch(/^ok +archive +folder \.treadle\/archive: write, conditional write, read$/m);
  expect(one.files()).toEqual([]);
});

test('doctor says when an archive cannot be made', async () => {
  const one = start(['doctor'], { ARCHIVE_DIR: '/proc/nothing/here' });
  expect(await one.exited).toBe(1);
  expect(one.output.stdout).toMatch(/^error +archive +folder \/proc\/nothing\/here: /m);
});

test('doctor says of a Redis why it does not let us in, and that it is far away', async () => {
  const redis = await startRedis();
  const far = await startTcpProxy({ port: redis.port });
  const admin = connectRedis(redis.url, { role: 'api', onError: () => undefined });
  const said = async (url: string): Promise<Record<string, string>[]> => {
    const one = start(['doctor', '--json'], { REDIS_URL: url });
    expect([0, 1]).toContain(await one.exited);
    return one.output.stdout.trim().split('\n').map((line) => JSON.parse(line) as Record<string, string>).filter(({ check }) => check === 'Redis');
  };
  try {
    far.delay(100);
    expect(await said(`redis://127.0.0.1:${far.port}`)).toEqual([
      { check: 'Redis', state: 'ok', detail: expect.any(String) as string },
      { check: 'Redis', state: 'warning', detail: expect.stringMatching(/^answers in \d+ ms at best/) as string, mend: expect.stringMatching(/redis-cli --latency/) as string },
    ]);
    await admin.config('SET', 'requirepass', 'secret');
    expect(await said(redis.url)).toEqual([{ check: 'Redis', state: 'error', detail: 'wants a password, and none is given', mend: expect.stringContaining('REDIS_URL') as string }]);
    expect(await said(redis.url.replace('redis://', 'redis://:wrong@'))).toEqual([{ check: 'Redis', state: 'error', detail: expect.stringMatching(/^refuses user or password: WRONGPASS/) as string, mend: expect.stringContaining('REDIS_URL') as string }]);
    expect((await said(redis.url.replace('redis://', 'redis://:secret@')))[0]).toMatchObject({ state: 'ok' });
  } finally {
    admin.disconnect();
    await far.close();
    await redis.stop();
  }
}, 60_000);

test('doctor says of a bucket that is not there that it has to be created', async () => {
  const s3 = await startS3Server();
  try {
    const one = start(['doctor', '--json'], { S3_BUCKET: 'not-there', S3_ENDPOINT: s3.endpoint, S3_ACCESS_KEY_ID: 'test', S3_SECRET_ACCESS_KEY: 'testtest' });
    expect(await one.exited).toBe(1);
    expect(one.output.stdout).toContain('"mend":"create the bucket not-there, or correct S3_BUCKET"');
  } finally {
    await s3.stop();
  }
}, 60_000);

test('doctor asks each server in its own way which models it has', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'treadle-doctor-'));
  const server = await startModelServer({ models: [{ name: 'there', context_length: 10, capabilities: [] }] });
  try {
    const at = (provider: string, model: string): object => ({ provider, model, base_url: provider === 'openai' ? `${server.url}/v1` : server.url });
    const models = { a: at('ollama', 'there'), b: at('openai', 'there'), c: at('anthropic', 'there'), d: at('openai', 'gone'), e: { ...at('anthropic', 'there'), base_url: 'http://127.0.0.1:1' } };
    const config = { models, chains: { default: { models: ['a'] } }, agents: { x: { instructions: 'x' } } };
    const file = join(folder, 'treadle.config.json');
    writeFileSync(file, JSON.stringify(config));
    const one = start(['doctor', '--config', file]);
    expect(await one.exited).toBe(1);
    const said = one.output.stdout.split('\n').filter((line) => line.includes(' model '));
    expect(said.map((line) => line.replaceAll(/ +/g, ' '))).toEqual([
      `ok model a there at ${server.url}`, `ok model b there at ${server.url}/v1`, `ok model c there at ${server.url}`,
      `error model d ${server.url}/v1 does not have gone → use a model it has: there`, expect.stringMatching(/^error model e http:\/\/127\.0\.0\.1:1 does not answer: .*ECONNREFUSED/),
    ]);
  } finally {
    await server.close();
    rmSync(folder, { recursive: true });
  }
});

test('--help of a command with many forms names each with its options', async () => {
  const one = start(['runs', '--help']);
  expect(await one.exited).toBe(0);
  expect(one.output.stdout).toMatch(/^usage: treadle runs ls \[--status S\]/);
  expect(one.output.stdout).toContain('\n       treadle runs fork ID --after N [--input TEXT] [--chain C]\n');
  expect(one.output.stdout).toContain('Exit codes: 0 done');
});

test('with --json a failure is one object on standard error', async () => {
  const failure = async (args: readonly string[], env?: Readonly<Record<string, string>>) => {
    const one = start([...args, '--json'], env);
    const exitCode = await one.exited;
    return { exitCode, stdout: one.output.stdout, said: JSON.parse(one.output.stderr) as unknown };
  };
  const problems: unknown[] = [];
  expect(await failure(['runs', 'ls'], { TREADLE_URL: 'http://127.0.0.1:1' })).toEqual({
    exitCode: 3, stdout: '', said: { code: 'unreachable', message: expect.stringContaining('cannot reach http://127.0.0.1:1') as string, problems } });
  expect(await failure(['runs', 'fly'])).toEqual({ exitCode: 2, stdout: '', said: { code: 'bad_usage', message: expect.stringContaining('usage: ') as string, problems } });
});
