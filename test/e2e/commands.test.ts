/** The processes under bad input and bad company: faults are named, nothing hangs, nothing happens behind anybody's back. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connectRedis } from '@treadle/run-store';
import { startModelServer, text, tool } from '@treadle/testkit';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { startStage, treadle, until, type Stage } from './processes.ts';

let dir: string;
beforeEach(() => { dir = mkdtempSync(join(tmpdir(), 'treadle-commands-')); });
afterEach(() => { rmSync(dir, { recursive: true, force: true }); });

describe('a bad start', () => {
  test('a configuration with five faults lists all five and exits 2 before anything is connected', async () => {
    const file = join(dir, 'treadle.config.json');
    writeFileSync(file, JSON.stringify({
      models: { small: { provider: 'olama', model: 'm', context_window: -1 } }, chains: { main: { models: ['small', 'ghost'] } }, surplus: true,
      agents: { a: { instructions: 'x', chain: 'nowhere', tools: [] } },
    }));
    const { code, stderr } = await treadle(['worker'], { env: { REDIS_URL: 'redis://127.0.0.1:1', TREADLE_CONFIG: file } });
    expect(code).toBe(2);
    for (const place of ['models.small.provider', 'models.small.context_window', 'chains.main.models', 'surplus', 'agents.a.chain']) expect(stderr).toContain(place);
  });

  test.each([
    [{ PORT: 'eighty', TREADLE_LEASE_MS: 'x' }, ['PORT: expected', 'TREADLE_LEASE_MS: expected']],
    [{ HOST: '0.0.0.0' }, ['HOST: expected a loopback address']],
    [{ ARCHIVE_MODE: 'never' }, ['ARCHIVE_MODE']],
    [{}, ['REDIS_URL: expected to be set']],
  ])('the environment %j is refused with exit 2', async (env, faults) => {
    const { code, stderr } = await treadle(['api'], { env: { TREADLE_CONFIG: '', ...env } });
    expect(code).toBe(2);
    for (const fault of faults) expect(stderr).toContain(fault);
  });

  test('unknown commands and options exit 2, an absent server 3', async () => {
    expect((await treadle(['fly'])).code).toBe(2);
    expect((await treadle(['run', 'x', '--fast'])).code).toBe(2);
    expect((await treadle(['up', '--workers', 'many'])).code).toBe(2);
    const absent = await treadle(['run', 'hello'], { env: { TREADLE_URL: 'http://127.0.0.1:1' } });
    expect(absent).toMatchObject({ code: 3, stderr: expect.stringContaining('cannot reach http://127.0.0.1:1') as string });
  });

  test('doctor says what is unusable, and how to mend it', async () => {
    const { code, stdout } = await treadle(['doctor', '--json'], { env: { REDIS_URL: 'redis://127.0.0.1:1', ARCHIVE_DIR: join(dir, 'archive') } });
    const findings = stdout.trim().split('\n').map((line) => JSON.parse(line) as { check: string; state: string; mend?: string });
    expect(code).toBe(1);
    expect(findings.find((each) => each.check === 'Redis')).toMatchObject({ state: 'error', mend: expect.stringContaining('REDIS_URL') as string });
    expect(findings.find((each) => each.check === 'archive')).toMatchObject({ state: 'ok' });
    expect(findings.find((each) => each.check === 'MCP server files')).toMatchObject({ state: 'ok' });
  }, 60_000);
});

describe('a running system', () => {
  let stage: Stage;
  afterEach(async () => { await stage.stop(); });

  test('the command line enqueues, follows, lists, shows, cancels and replays', async () => {
    stage = await startStage({ model: { script: [tool(null, 'test__add', { a: 1, b: 2 }), text('The sum is 3.')] } });
    await stage.startWorker();
    const env = { TREADLE_URL: stage.api.url };
    const followed = await treadle(['run', 'What is 1 + 2?', '--agent', 'tester'], { env });
    expect(followed).toMatchObject({ code: 0, stdout: expect.stringMatching(/call {3}test\/add .*\n.*result 3\n[^]*The sum is 3\.\n[^]*completed \(answered\): 2 turns, 1 tool calls/) as string });
    const list = JSON.parse((await treadle(['runs', 'ls', '--json'], { env })).stdout) as { data: { id: string }[] };
    const id = list.data[0]!.id;
    expect((await treadle(['runs', 'show', id], { env })).stdout).toContain('The sum is 3.');
    expect((await treadle(['runs', 'tail', id, '--json'], { env })).stdout.trim().split('\n').length).toBeGreaterThan(10);
    expect(await treadle(['runs', 'replay', id], { env })).toMatchObject({ code: 0, stdout: expect.stringContaining('fold to the stored state') as string });
    expect(await treadle(['runs', 'cancel', id], { env })).toMatchObject({ code: 2, stderr: expect.stringContaining('invalid_state') as string });
    expect((await treadle(['run', 'x', '--agent', 'nobody'], { env }))).toMatchObject({ code: 2, stderr: expect.stringContaining('agent_not_found') as string });
    stage.model.assertUsedUp();
  }, 60_000);

  test('a cancel reaches a tool that would take a minute within about a second, and its call has its one result', async () => {
    stage = await startStage({ model: { script: [tool('c1', 'test__slow_lookup', { ms: 60_000 })] } });
    await stage.startWorker();
    const { id } = await stage.client.createRun({ agent: 'tester', input: 'go' });
    await until('the tool has begun', () => stage.ledger().some((line) => line.phase === 'start'));
    const askedMs = Date.now();
    await stage.client.cancel(id);
    const run = await stage.client.wait(id, 20_000);
    expect(run).toMatchObject({ status: 'cancelled', stop_reason: 'interrupted' });
    await until('the server was told', () => stage.ledger().some((line) => line.phase === 'cancelled'));
    expect(Date.now() - askedMs).toBeLessThan(5000);
    const results = [];
    for await (const event of stage.client.events(id)) if (event.type === 'tool_result') results.push(event.outcome);
    expect(results).toEqual(['cancelled']);
  }, 60_000);

  test('while the model server is away the run waits, and goes on when it is back', async () => {
    stage = await startStage({ model: { script: [] } });
    await stage.startWorker();
    const port = Number(new URL(stage.model.url).port);
    await stage.model.close();
    const { id } = await stage.client.createRun({ agent: 'tester', input: 'go' });
    await until('the failure is in the log', async () => {
      const page = await stage.client.get(`/v1/runs/${id}/events`) as { data: { type: string; action?: string; error_type?: string }[] };
      return page.data.some((event) => event.type === 'error' && event.action === 'backoff' && event.error_type === 'connect_failed');
    });
    const back = await startModelServer({ dialect: 'ollama', script: [text('back')], port });
    expect(await stage.client.wait(id, 30_000)).toMatchObject({ status: 'completed', answer: 'back' });
    await back.close();
  }, 60_000);

  test('Redis away: 503 within 5 s, and nothing that was refused appears later', async () => {
    stage = await startStage({ model: { script: [], whenUsedUp: 'done' } });
    const redis = connectRedis(stage.redis.url, { role: 'command' });
    await stage.redis.kill();
    const askedMs = Date.now();
    const answers = await Promise.all(Array.from({ length: 20 }, async (_, index) => {
      const response = await fetch(`${stage.api.url}/v1/runs`, {
        method: 'POST', headers: { 'content-type': 'application/json', 'idempotency-key': `k${index}` }, body: JSON.stringify({ agent: 'tester', input: 'ghost' }) });
      return { status: response.status, retry: response.headers.get('retry-after'), code: (await response.json() as { code: string }).code };
    }));
    expect(Date.now() - askedMs).toBeLessThan(5000);
    for (const answer of answers) expect(answer).toMatchObject({ status: 503, retry: expect.stringMatching(/^\d+$/) as string, code: 'unavailable' });
    await stage.redis.restart();
    await until('the API is ready again', async () => (await fetch(`${stage.api.url}/readyz`)).status === 200);
    await stage.startWorker();
    const { id } = await stage.client.createRun({ agent: 'tester', input: 'real' }, { idempotencyKey: 'k0' });
    await stage.client.wait(id, 20_000);
    expect((await stage.client.runs()).data.map((run) => run.id)).toEqual([id]);
    redis.disconnect();
  }, 90_000);
});
