import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { runsCommand } from './runs.ts';

interface Asked { readonly method: string | undefined; readonly url: string | undefined; readonly body: unknown }

let server: Server;
let asked: Asked[];
let printed: string;

/** An API that accepts every command. */
beforeEach(async () => {
  asked = [];
  printed = '';
  server = createServer((request, response) => {
    let text = '';
    request.on('data', (chunk: Buffer) => { text += chunk.toString(); }).on('end', () => {
      asked.push({ method: request.method, url: request.url, body: text === '' ? undefined : JSON.parse(text) });
      response.writeHead(202, { 'content-type': 'application/json' }).end('{"id":"run_1","status":"running"}');
    });
  });
  await new Promise<void>((resolve) => { server.listen(0, '127.0.0.1', resolve); });
  vi.stubEnv('TREADLE_URL', `http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  vi.spyOn(process.stdout, 'write').mockImplementation((text) => { printed += String(text); return true; });
});

afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
  server.closeAllConnections();
  server.close();
});

describe('runs', () => {
  test.each([
    [['cancel', 'run_1'], 'POST', '/v1/runs/run_1/cancel', undefined, 'run_1 will be cancelled\n'],
    [['pause', 'run_1'], 'POST', '/v1/runs/run_1/pause', undefined, 'run_1 will pause at its next safe point\n'],
    [['resume', 'run_1'], 'POST', '/v1/runs/run_1/resume', undefined, 'run_1 goes on\n'],
    [['resume', 'run_1', '--input', 'In Paris.'], 'POST', '/v1/runs/run_1/resume', { input: 'In Paris.' }, 'run_1 goes on\n'],
    [['steer', 'run_1', 'be', 'quick'], 'POST', '/v1/runs/run_1/steer', { text: 'be quick' }, 'run_1 will be told\n'],
  ])('%j asks the API once and says what was accepted', async (args, method, url, body, line) => {
    expect(await runsCommand(args)).toBe(0);
    expect(asked).toEqual([{ method, url, body }]);
    expect(printed).toBe(line);
  });

  test.each([[['pause', 'run_1', '--json']], [['resume', 'run_1', '--json']], [['steer', 'run_1', 'x', '--json']], [['cancel', 'run_1', '--json']]])('%j prints the run', async (args) => {
    expect(await runsCommand(args)).toBe(0);
    expect(JSON.parse(printed)).toEqual({ id: 'run_1', status: 'running' });
  });

  test.each([[['steer', 'run_1']], [['steer', 'run_1', ' ']], [['pause']], [['fly', 'run_1']], [['constructor', 'run_1']], [['approve', 'run_1']]])('%j is bad usage, and nothing is asked', async (args) => {
    await expect(runsCommand(args)).rejects.toMatchObject({ exitCode: 2 });
    expect(asked).toEqual([]);
  });
});
