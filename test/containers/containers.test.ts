/** The image as it is built from its own Dockerfile, and the system in containers: what a worker's death and its drain cost there. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createClient } from '@treadle/client';
import type { RunEvent } from '@treadle/core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { until } from '../e2e/processes.ts';
import { imageOf } from './compose-file.ts';
import { docker, findEngine, hasCompose, inspect, tryDocker } from './engine.ts';
import { buildImages, image } from './images.ts';
import type { Plan } from './model/ollama.ts';
import { adminKey, createStack } from './stack.ts';
import { startStage, type Stage } from './stage.ts';

// Everything is taken away by the tests themselves: a container that watches over them would be one image more to have.
process.env['TESTCONTAINERS_RYUK_DISABLED'] ??= 'true';

const maxImageBytes = 300_000_000;

const ready = findEngine([imageOf('redis')]).type === 'ready';
// Asked for only where there is an engine: a test that is skipped twice would not be counted.
const stackReady = ready && hasCompose && findEngine(['redis', 's3', 'prometheus'].map(imageOf)).type === 'ready';

describe.skipIf(!ready)('the image', () => {
  beforeAll(buildImages, 900_000);

  const inside = (script: string): Promise<string> => docker(['run', '--rm', '--read-only', '--tmpfs', '/tmp', '--entrypoint', 'sh', image, '-c', script]);

  test('is under 300 MB', async () => {
    expect(await inspect<number>(image, '.Size')).toBeLessThan(maxImageBytes);
  });

  test('runs as nobody in particular, with a health check, below an init', async () => {
    const config = await inspect<{ User: string; Healthcheck: { Test: string[] }; Entrypoint: string[]; Cmd: string[] }>(image, '.Config');
    expect(config).toMatchObject({ User: '1000:1000', Healthcheck: { Test: ['CMD', 'node', 'deploy/docker/health.ts'] }, Entrypoint: ['tini', '--', './treadle'], Cmd: ['api'] });
    expect(await inside('id -u; touch /app/x 2>/dev/null || echo cannot write; touch /tmp/x && echo can write in /tmp; find /app -writable ! -type l | wc -l')).toBe('1000\ncannot write\ncan write in /tmp\n0');
  });

  test('holds what runs, and neither tests, tools, secrets nor the history', async () => {
    const found = await inside('cd /app && ls -A && find . -path ./node_modules -prune -o \\( -name "*.test.ts" -o -name ".env*" -o -name "*.log" -o -name fixtures \\) -print');
    expect(found.split('\n').sort()).toEqual(['.npmrc', 'apps', 'deploy', 'docs', 'libs', 'node_modules', 'package-lock.json', 'package.json', 'test', 'treadle']);
    expect(await inside('cd /app && find test libs/testkit -type f; ls node_modules | grep -E "^(vitest|vite|eslint|nx|typescript|testcontainers|fauxqs|fast-check)$" || echo no tools')).toBe('test/package.json\nlibs/testkit/package.json\nno tools');
  });

  test('says what is missing, and exits with 2', async () => {
    expect(await tryDocker(['run', '--rm', image])).toMatchObject({ code: 2, stderr: expect.stringContaining('REDIS_URL') as string });
    expect(await tryDocker(['run', '--rm', '--env', 'REDIS_URL=redis://127.0.0.1:1', image])).toMatchObject({ code: 2, stderr: expect.stringContaining('TREADLE_ADMIN_KEY') as string });
    expect(await tryDocker(['run', '--rm', image, 'nonsense'])).toMatchObject({ code: 2, stderr: expect.stringContaining('unknown command "nonsense"') as string });
  });

  describe('and the system made of it', () => {
    let stage: Stage;
    beforeAll(async () => { stage = await startStage(); }, 300_000);
    afterAll(async () => { await stage?.stop(); }, 120_000);

    const begin = async (plan: Omit<Plan, 'call'>): Promise<string> => (await stage.client.createRun({ agent: 'tester', input: JSON.stringify({ ...plan, call: { name: 'row', args: {} } }) })).id;
    /** The first such event of a run, as soon as it is there. */
    const event = async (id: string, is: (event: RunEvent) => boolean): Promise<RunEvent> => {
      for await (const each of stage.client.events(id)) if (is(each)) return each;
      throw new Error(`${id} has ended without it`);
    };
    const logOf = async (id: string): Promise<RunEvent[]> => {
      const log: RunEvent[] = [];
      for await (const each of stage.client.events(id)) log.push(each);
      return log;
    };
    const rowsOf = (id: string): string[] => readFileSync(join(stage.shared, 'rows.txt'), 'utf8').split('\n').filter((line) => line.startsWith(id));
    const workerOf = (turn: RunEvent) => stage.workerNamed((turn as RunEvent & { worker: string }).worker);
    /** Whole, without a gap, folding to what the API says; each call happened once. */
    const expectWhole = async (id: string, calls: number): Promise<RunEvent[]> => {
      const log = await logOf(id);
      expect(log.map(({ seq }) => seq)).toEqual(log.map((_, index) => index + 1));
      expect(log.at(-1)).toMatchObject({ type: 'run_end', status: 'completed' });
      expect(await stage.client.replay(id)).toMatchObject({ identical: true, events: log.length });
      const rows = rowsOf(id);
      expect(rows).toHaveLength(calls);
      expect(new Set(rows).size).toBe(calls);
      return log;
    };

    test('is hardened, and each container says that it is healthy', async () => {
      for (const each of [stage.api, ...stage.workers]) {
        expect(await inspect(each.getId(), '.HostConfig')).toMatchObject({ ReadonlyRootfs: true, CapDrop: ['ALL'], SecurityOpt: ['no-new-privileges'] });
        expect(await inspect(each.getId(), '.State.Health.Status')).toBe('healthy');
        expect((await each.exec(['id', '-u'])).output.trim()).toBe('1000');
        expect(await docker(['exec', each.getId(), 'cat', '/proc/1/comm'])).toBe('tini');
      }
    });

    test('a command is run inside, and doctor finds nothing wrong', async () => {
      const { exitCode, output } = await stage.api.exec(['./treadle', 'doctor']);
      expect(output).toContain('conditional write');
      expect(output, output).not.toMatch(/^error/m);
      expect(exitCode, output).toBe(0);
      const run = await stage.api.exec(['./treadle', 'run', '--agent', 'tester', JSON.stringify({ turns: 1, call: { name: 'row', args: {} } })]);
      expect(run.exitCode, run.output).toBe(0);
      expect(run.output).toContain('completed (answered)');
    });

    test('a key is asked for', async () => {
      const url = `http://${stage.api.getHost()}:${stage.api.getMappedPort(8080)}`;
      expect((await fetch(`${url}/v1/runs`)).status).toBe(401);
      expect((await fetch(`${url}/healthz`)).status).toBe(200);
    });

    test('a container that is stopped drains: its turn is ended, it exits with 0, and the run goes on elsewhere', async () => {
      const id = await begin({ turns: 4, delay_ms: 2000 });
      const turn = await event(id, (each) => each.type === 'turn_start' && each.turn_number === 2);
      await event(id, (each) => each.type === 'model_request' && each.turn_number === 2);
      const worker = workerOf(turn);
      await docker(['stop', '--time', '60', worker.getId()]);
      expect(await inspect(worker.getId(), '.State')).toMatchObject({ Status: 'exited', ExitCode: 0, OOMKilled: false });
      const log = await expectWhole(id, 4);
      // Drained, not abandoned: no turn was begun a second time.
      expect(log.filter((each) => each.type === 'turn_start').map(({ attempt }) => attempt)).toEqual([1, 1, 1, 1, 1]);
      await docker(['start', worker.getId()]);
      await until('it is healthy again', async () => await inspect(worker.getId(), '.State.Health.Status') === 'healthy', 60_000);
    }, 180_000);

    test('a container that is killed in the middle of a turn costs that turn alone', async () => {
      const id = await begin({ turns: 4, stall_at: 3 });
      const turn = await event(id, (each) => each.type === 'turn_start' && each.turn_number === 3);
      // Not at `model_request`: the request may not have come yet, and the next one would be the one that is never answered.
      await event(id, (each) => each.type === 'assistant_text' && each.turn_number === 3);
      const worker = workerOf(turn);
      await docker(['kill', worker.getId()]);
      const ended = await stage.client.wait(id, 60_000);
      expect(ended).toMatchObject({ status: 'completed', answer: 'done' });
      const log = await expectWhole(id, 4);
      const turns = log.flatMap((each) => (each.type === 'turn_start' ? [{ turn: each.turn_number, attempt: each.attempt, worker: each.worker }] : []));
      expect(turns.map(({ turn: number, attempt }) => `${number}.${attempt}`)).toEqual(['1.1', '2.1', '3.1', '3.2', '4.1', '5.1']);
      expect(stage.workerNamed(turns[3]!.worker).getId()).not.toBe(worker.getId());
    }, 180_000);
  });

  describe.skipIf(ready && !stackReady)('and docker-compose.yml, brought up with two workers', () => {
    const stack = createStack();
    beforeAll(async () => {
      await stack.compose('up', '--detach', '--wait', '--no-build', '--scale', 'worker=2', 'api', 'worker', 'prometheus');
    }, 300_000);
    afterAll(async () => { await stack.down(); }, 120_000);

    const input = JSON.stringify({ turns: 2, call: { name: 'files__list_directory', args: { path: '/app/docs' } } } satisfies Plan);

    test('a run is enqueued with one command, by the agent that comes with the image', async () => {
      const { code, stdout, stderr } = await stack.try('run', '--rm', '-T', 'cli', 'run', input);
      expect(code, `${stdout}${stderr}`).toBe(0);
      expect(stdout).toContain('[FILE] archive.md');
      expect(stdout).toMatch(/completed \(answered\): 3 turns, 2 tool calls/);
    }, 60_000);

    test('doctor finds nothing wrong in any of the containers', async () => {
      for (const where of [['exec', '-T', 'api', './treadle'], ['exec', '-T', 'worker', './treadle'], ['run', '--rm', '-T', 'cli']]) {
        const { code, stdout, stderr } = await stack.try(...where, 'doctor', '--json');
        const findings = stdout.trim().split('\n').map((line) => JSON.parse(line) as { check: string; state: string; detail: string });
        expect(findings.filter(({ state }) => state !== 'ok'), `${where.join(' ')}${stderr}`).toEqual([]);
        expect(findings.map(({ detail }) => detail).join('\n')).toMatch(/appendonly yes, appendfsync always, noeviction\nbucket treadle at http:\/\/s3:8333: write/);
        expect(code).toBe(0);
      }
    }, 120_000);

    test('what ended is in the bucket, whole', async () => {
      const client = createClient({ url: await stack.url('api', 8080), apiKey: adminKey });
      const { id } = await client.createRun({ input });
      const ended = await client.wait(id, 60_000);
      await until('it is archived', async () => (await client.run(id))['archived_seq'] === ended.last_seq, 30_000);
    }, 120_000);

    test('Prometheus finds the API and each worker by the name of its service, and again when there are more or fewer', async () => {
      const url = await stack.url('prometheus', 9090);
      const up = async (): Promise<Record<string, number>> => {
        const { data } = await (await fetch(`${url}/api/v1/query?query=${encodeURIComponent('sum by (job) (up)')}`)).json() as { data: { result: { metric: { job: string }; value: [number, string] }[] } };
        return Object.fromEntries(data.result.map(({ metric, value }) => [metric.job, Number(value[1])]));
      };
      await until('the API and two workers are scraped', async () => {
        const jobs = await up();
        return jobs['treadle-api'] === 1 && jobs['treadle-worker'] === 2;
      }, 90_000);
      await stack.compose('up', '--detach', '--wait', '--no-build', '--no-recreate', '--scale', 'worker=3', 'worker');
      await until('a third is found', async () => (await up())['treadle-worker'] === 3, 90_000);
      await stack.compose('up', '--detach', '--no-build', '--no-recreate', '--scale', 'worker=1', 'worker');
      await until('those that are gone are forgotten', async () => (await up())['treadle-worker'] === 1, 90_000);
      const { data } = await (await fetch(`${url}/api/v1/rules`)).json() as { data: { groups: { name: string; rules: unknown[] }[] } };
      expect(data.groups.map(({ name }) => name).sort()).toEqual(['treadle', 'treadle-recorded']);
    }, 400_000);

    test('stopping everything ends each process of Treadle with 0, and starting it again loses nothing', async () => {
      const client = createClient({ url: await stack.url('api', 8080), apiKey: adminKey });
      const { data: before } = await client.runs({ limit: '50' });
      const containers = (await Promise.all(['api', 'worker'].map((service) => stack.containers(service)))).flat();
      await stack.compose('stop');
      for (const id of containers) expect(await inspect(id, '.State')).toMatchObject({ Status: 'exited', ExitCode: 0 });
      await stack.compose('up', '--detach', '--wait', '--no-build', '--no-recreate', 'api', 'worker');
      const again = createClient({ url: await stack.url('api', 8080), apiKey: adminKey });
      expect((await again.runs({ limit: '50' })).data.map(({ id }) => id)).toEqual(before.map(({ id }) => id));
      expect(before.length).toBeGreaterThanOrEqual(2);
    }, 180_000);

    test('Redis is lost: the archive in the bucket brings back what was under way, as the page says', async () => {
      const client = createClient({ url: await stack.url('api', 8080), apiKey: adminKey });
      const { id } = await client.createRun({ input: JSON.stringify({ ...JSON.parse(input) as Plan, stall_at: 2 } satisfies Plan) });
      await until('the first turn is archived', async () => {
        const run = await client.run(id);
        return run.tool_calls === 1 && run['archived_seq'] === run.last_seq && run.turn_number === 2;
      });
      await stack.compose('kill', 'worker', 'api');
      await stack.compose('exec', '-T', 'redis', 'redis-cli', 'flushall');
      expect(await stack.compose('run', '--rm', '-T', '--no-deps', 'cli', 'restore', '--from-archive')).toContain('1 were restored');
      await stack.compose('up', '--detach', '--wait', '--no-build', '--no-recreate', 'api', 'worker');
      const again = createClient({ url: await stack.url('api', 8080), apiKey: adminKey });
      expect(await again.wait(id, 60_000)).toMatchObject({ status: 'completed', answer: 'done', tool_calls: 2 });
      expect(await again.replay(id)).toMatchObject({ identical: true });
    }, 180_000);
  });
});
