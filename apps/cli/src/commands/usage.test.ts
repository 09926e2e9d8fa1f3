import { expect, test } from 'vitest';
import { answeringApi } from '../fixtures/answering-api.ts';
import { usageCommand } from './usage.ts';

const sums = { runs: 12, input_tokens: 34_000, output_tokens: 560, cached_tokens: 1000, wasted_tokens: 7, cost_usd: 0.12345, wasted_cost_usd: 0.001 };
const report = { from: '2026-11-01', to: '2026-11-30', group_by: 'model', data: [{ model: 'small', ...sums }], total: sums };
const api = answeringApi({ status: 200, body: report });

test('is a table, a line for each group and one for all', async () => {
  expect(await usageCommand([])).toBe(0);
  expect(api.asked).toEqual([{ method: 'GET', url: '/v1/usage?group_by=model' }]);
  expect(api.printed).toBe([
    'ended from 2026-11-01 to 2026-11-30 (UTC)', 'model  runs  input  cached  output  wasted  cost in $  of it wasted', 'small    12  34000    1000     560       7     0.1235        0.0010',
    'total    12  34000    1000     560       7     0.1235        0.0010', ''].join('\n'));
});

test('asks for the group and the days that are named, and prints the answer itself with --json', async () => {
  expect(await usageCommand(['--group-by', 'day', '--from', '2026-11-01', '--to', '2026-11-30', '--json'])).toBe(0);
  expect(api.asked).toEqual([{ method: 'GET', url: '/v1/usage?group_by=day&from=2026-11-01&to=2026-11-30' }]);
  expect(JSON.parse(api.printed)).toEqual(report);
});

test.each([[['ls']], [['--group-by', 'tenant']]])('%j is no way to ask', async (args) => {
  await expect(usageCommand(args)).rejects.toThrow('usage: treadle usage');
  expect(api.asked).toEqual([]);
});
