import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { usageCommand } from './usage.ts';

const sums = { runs: 12, input_tokens: 34_000, output_tokens: 560, cached_tokens: 1000, wasted_tokens: 7, cost_usd: 0.12345, wasted_cost_usd: 0.001 };
const answer = { from: '2026-11-01', to: '2026-11-30', group_by: 'model', data: [{ model: 'small', ...sums }], total: sums };
let server: Server;
let asked: string[];
let printed: string;

beforeEach(async () => {
  asked = [];
  printed = '';
  server = createServer((request, response) => {
    asked.push(`${request.method} ${request.url}`);
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answer));
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

test('is a table, a line for each group and one for all', async () => {
  expect(await usageCommand([])).toBe(0);
  expect(asked).toEqual(['GET /v1/usage?group_by=model']);
  expect(printed).toBe([
    'ended from 2026-11-01 to 2026-11-30 (UTC)', 'model  runs  input  cached  output  wasted  cost in $  of it wasted', 'small    12  34000    1000     560       7     0.1235        0.0010',
    'total    12  34000    1000     560       7     0.1235        0.0010', ''].join('\n'));
});

test('asks for the group and the days that are named, and prints the answer itself with --json', async () => {
  expect(await usageCommand(['--group-by', 'day', '--from', '2026-11-01', '--to', '2026-11-30', '--json'])).toBe(0);
  expect(asked).toEqual(['GET /v1/usage?group_by=day&from=2026-11-01&to=2026-11-30']);
  expect(JSON.parse(printed)).toEqual(answer);
});

test.each([[['ls']], [['--group-by', 'tenant']]])('%j is no way to ask', async (args) => {
  await expect(usageCommand(args)).rejects.toThrow('usage: treadle usage');
  expect(asked).toEqual([]);
});
