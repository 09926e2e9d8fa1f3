/** `treadle usage`: what runs have used, from the terminal. */
import { parseArgs } from 'node:util';
import type { UsageGroup, UsageReport, UsageSums } from '@treadle/client';
import { clientFromEnvironment } from '../server.ts';
import { CommandFailed, exitCodes } from '../setup.ts';

export const usageUsage = 'treadle usage [--group-by model|agent|day] [--from DAY] [--to DAY] [--json]';

export async function usageCommand(args: string[]): Promise<number> {
  const { values: { 'group-by': by, from, to, json }, positionals } = parseArgs({ args, allowPositionals: true, options: {
    'group-by': { type: 'string', default: 'model' }, from: { type: 'string' }, to: { type: 'string' }, json: { type: 'boolean', default: false } } });
  if (positionals.length > 0 || !['model', 'agent', 'day'].includes(by)) throw new CommandFailed(exitCodes.badUsage, [`usage: ${usageUsage}`]);
  const report = await clientFromEnvironment(process.env).usage({ group_by: by as UsageGroup, ...(from === undefined ? {} : { from }), ...(to === undefined ? {} : { to }) });
  process.stdout.write(json ? `${JSON.stringify(report)}\n` : table(report));
  return exitCodes.done;
}

function table({ from, to, group_by, data, total }: UsageReport): string {
  const cells = [
    [group_by, 'runs', 'input', 'cached', 'output', 'wasted', 'cost in $', 'of it wasted'],
    ...data.map((group) => [group[group_by] ?? '', ...numbers(group)]), ['total', ...numbers(total)],
  ];
  const widths = cells[0]!.map((_, column) => Math.max(...cells.map((row) => row[column]!.length)));
  const lines = cells.map(([name, ...rest]) => [name!.padEnd(widths[0]!), ...rest.map((cell, index) => cell.padStart(widths[index + 1]!))].join('  '));
  return `ended from ${from} to ${to} (UTC)\n${lines.join('\n')}\n`;
}

function numbers({ runs, input_tokens, cached_tokens, output_tokens, wasted_tokens, cost_usd, wasted_cost_usd }: UsageSums): string[] {
  return [...[runs, input_tokens, cached_tokens, output_tokens, wasted_tokens].map(String), cost_usd.toFixed(4), wasted_cost_usd.toFixed(4)];
}
