/** The image as it is built from its own Dockerfile, and the system in containers: what a worker's death and its drain cost there. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { RunEvent } from '@treadle/core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { until } from '../e2e/processes.ts';
import { imageOf } from './compose-file.ts';
import { docker, findEngine, inspect, tryDocker } from './engine.ts';
import { buildImages, image } from './images.ts';
import type { Plan } from './model/ollama.ts';
import { startStage, type Stage } from './stage.ts';

// Everything is taken away by the tests themselves: a container that watches over them would be one image more to have.
process.env['TESTCONTAINERS_RYUK_DISABLED'] ??= 'true';

const maxImageBytes = 300_000_000;

describe.skipIf(findEngine([imageOf('redis')]).type !== 'ready')('the image', () => {
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
      await event(id, (each) => each.type === 'model_request' && each.turn_number === 3);
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
});
