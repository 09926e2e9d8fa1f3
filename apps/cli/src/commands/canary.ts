/** `treadle canary …`: the trial of a new model, from the terminal. */
import { parseArgs } from 'node:util';
import type { Canary, CanaryOrder } from '@treadle/client';
import { clientFromEnvironment } from '../server.ts';
import { CommandFailed, exitCodes } from '../setup.ts';

export const canaryUsage = 'treadle canary show CHAIN | set CHAIN STAGE | pause CHAIN | promote CHAIN | rollback CHAIN   [--json]';

export async function canaryCommand(args: string[]): Promise<number> {
  const { values, positionals } = parseArgs({ args, allowPositionals: true, options: { json: { type: 'boolean', default: false } } });
  const [verb = '', chain, ...rest] = positionals;
  const order = verb === 'show' ? null : orderOf(verb, rest);
  if (chain === undefined || rest.length > (verb === 'set' ? 1 : 0)) throw badUsage();
  const client = clientFromEnvironment(process.env);
  const canary = order === null ? await client.canary(chain) : await client.moveCanary(chain, order);
  const text = order === null ? shown(canary) : moved(canary);
  process.stdout.write(values.json ? `${JSON.stringify(canary)}\n` : text);
  return exitCodes.done;
}

function orderOf(verb: string, [stage]: readonly string[]): CanaryOrder {
  switch (verb) {
    case 'pause': case 'promote': case 'rollback': return { action: verb };
    case 'set':
      if (stage === undefined || !/^\d{1,3}$/.test(stage)) throw badUsage();
      return { action: 'set', stage: Number(stage) };
    default: throw badUsage();
  }
}

function badUsage(): CommandFailed {
  return new CommandFailed(exitCodes.badUsage, [`usage: ${canaryUsage}`]);
}

function place({ chain, model, stage, status }: Canary): string {
  return `${chain}: ${model} begins ${stage} % of new runs (${status.replace('_', ' ')})\n`;
}

function moved(canary: Canary): string {
  const [last] = canary.decisions;
  return `${place(canary)}${last === undefined ? '' : `${line(last)}\n`}`;
}

function shown(canary: Canary): string {
  const { verdict, stages, min_runs, bounds, since, decisions } = canary;
  const rules = `stages ${stages.join(', ')}; ${min_runs} runs a stage; bounds: error rate +${bounds.error_rate_delta}, latency x${bounds.latency_ratio}, cost x${bounds.cost_ratio}`;
  return `${place(canary)}since ${since}\n${rules}\nnow: ${verdict.decision} (${verdict.reason})\n${arms(canary)}${decisions.slice(0, 10).map((each) => `${line(each)}\n`).join('')}`;
}

/** What the arms have come to in this stage. */
function arms({ verdict: { numbers } }: Canary): string {
  const totals = numbers.totals as Readonly<Record<string, Readonly<Record<string, unknown>>>> | undefined;
  return Object.entries(totals ?? {}).map(([arm, sums]) => `${arm.padEnd(9)}${['ended', 'completed', 'failed', 'validation_failures', 'tool_errors', 'cost_usd'].map((name) => `${name} ${String(sums[name])}`).join('  ')}\n`).join('');
}

function line({ at, decision, by, from_stage, to_stage, reason }: Canary['decisions'][number]): string {
  return `${at}  ${decision.padEnd(9)}${from_stage} → ${to_stage} %  ${reason}, by ${by}`;
}
