/**
 * The trials of new models, in Redis. Holds nothing in memory; writes through the scripts in scripts/ alone, each of which looks before
 * it writes. The port's K1 to K6 hold as follows.
 * K1      `canary_declare`     K2, K6  `canary_assign`     K3  `canary_report`: a record that has its end is not written again
 * K4, K5  `canary_decide` compares the version, and remembers its last decision for a client that sends again
 */
import type { CanaryArm } from '@treadle/core';
import {
  mostDecisions, mostRuns, type ArmTotals, type CanaryDecision, type CanaryDefinition, type CanaryOutcome, type CanaryReading, type CanaryRun, type CanaryState, type CanaryStatus,
  type CanaryStore,
} from '@treadle/engine';
import { fleetKeys } from './keys.ts';
import { createScriptRunner, unknownReply, type RedisClient } from './script-runner.ts';

export const canaryScripts = ['canary_assign', 'canary_decide', 'canary_declare', 'canary_due', 'canary_read', 'canary_report', 'canary_withdraw'] as const;

export interface CanaryStoreOptions {
  /** As the run store's. */
  readonly prefix: string;
  /** After which a call is given up; nobody knows then whether it happened. Default 2,000. */
  readonly callTimeoutMs?: number;
}

/** Reads the script files; throws where one is missing. */
export function createCanaryStore(redis: RedisClient, { prefix, callTimeoutMs = 2000 }: CanaryStoreOptions): CanaryStore {
  const keys = fleetKeys(prefix);
  const run = createScriptRunner(redis, canaryScripts, { callTimeoutMs });
  return {
    declare: async (chain, definition) => {
      const reply = await run('canary_declare', { keys: keys.canary(chain), args: [JSON.stringify(definition), definition.model, ...definition.stages] });
      if (reply[0] !== 'begun' && reply[0] !== 'kept') throw unknownReply('canary_declare', reply);
      return reply[0];
    },
    assign: async ({ chain, model, run_id, bucket, run_at_ms }) => {
      const reply = await run('canary_assign', { keys: keys.canary(chain), args: [model, run_id, bucket, run_at_ms ?? 0, mostRuns.canary, mostRuns.control] });
      switch (reply[0]) {
        case 'none': return { type: 'none' };
        case 'assigned': return { type: 'assigned', arm: reply[1] as CanaryArm, stage: Number(reply[2]) };
        default: throw unknownReply('canary_assign', reply);
      }
    },
    withdraw: async (chain, run_id) => {
      await run('canary_withdraw', { keys: keys.canary(chain), args: [run_id] });
    },
    report: async (outcome) => {
      const reply = await run('canary_report', { keys: keys.canary(outcome.chain), args: [outcome.run_id, endOf(outcome), ...sumsOf(outcome)] });
      if (reply[0] !== 'counted' && reply[0] !== 'again' && reply[0] !== 'not_counted') throw unknownReply('canary_report', reply);
      return reply[0];
    },
    due: async (chain, every_ms) => (await run('canary_due', { keys: keys.canary(chain), args: [every_ms] }))[0] === 'due',
    read: async (chain, { decisions, runs }) => {
      const reply = await run('canary_read', { keys: keys.canary(chain), args: [decisions, runs ? 'runs' : 'no_runs'] });
      return reply[0] === 'missing' ? null : readingOf(chain, reply.slice(1));
    },
    decide: async (chain, seen_version, decision) => {
      const { id, to_stage, status } = decision;
      const reply = await run('canary_decide', { keys: keys.canary(chain), args: [seen_version, id, JSON.stringify(decision), to_stage, status, mostDecisions] });
      if (reply[0] !== 'decided' && reply[0] !== 'conflict') throw unknownReply('canary_decide', reply);
      return reply[0];
    },
  };
}

/** Flags are a letter each, `-` for none of them. */
function endOf({ verdict, ended_ms, errors, validation_failures, tool_errors, active_s, cost_usd }: CanaryOutcome): string {
  if (verdict === 'neutral') return '';
  const flags = [verdict === 'failed' ? 'f' : '', Object.keys(errors).length > 0 ? 'e' : '', validation_failures > 0 ? 'v' : '', tool_errors > 0 ? 't' : ''].join('');
  return `${ended_ms} ${flags === '' ? '-' : flags} ${active_s} ${cost_usd}`;
}

function sumsOf({ verdict, stop_reason, errors, ...sums }: CanaryOutcome): (string | number)[] {
  const added: Record<string, number> = {
    ended: 1, ...(verdict === 'neutral' ? {} : { [verdict]: 1 }), [`stop:${stop_reason}`]: 1,
    ...Object.fromEntries(Object.entries(errors).map(([type, count]) => [`error:${type}`, count])),
    validation_failures: sums.validation_failures, tool_calls: sums.tool_calls, tool_errors: sums.tool_errors, active_s: sums.active_s, cost_usd: sums.cost_usd,
  };
  return Object.entries(added).filter(([, amount]) => amount !== 0).flat();
}

function readingOf(chain: string, [now, state, runs, canary, control, decisions]: readonly unknown[]): CanaryReading {
  return {
    state: stateOf(chain, recordOf(state)), now_ms: Number(now), runs: (runs as string[]).map(runOf), totals: { canary: totalsOf(recordOf(canary)), control: totalsOf(recordOf(control)) },
    decisions: (decisions as string[]).map((text) => JSON.parse(text) as CanaryDecision),
  };
}

function stateOf(chain: string, fields: Readonly<Record<string, string>>): CanaryState {
  return {
    chain, definition: JSON.parse(fields.definition ?? 'null') as CanaryDefinition, stage: Number(fields.stage), status: fields.status as CanaryStatus, since_ms: Number(fields.since),
    version: Number(fields.version),
  };
}

function runOf(record: string): CanaryRun {
  const [arm, start, at, flags = '', active_s, cost_usd] = record.split(' ');
  const ended = at === undefined ? null : {
    at_ms: Number(at), failed: flags.includes('f'), erred: flags.includes('e'), invalid: flags.includes('v'), tool_failed: flags.includes('t'), active_s: Number(active_s), cost_usd: Number(cost_usd),
  };
  return { arm: arm as CanaryArm, start_ms: Number(start), ended };
}

function totalsOf(sums: Readonly<Record<string, string>>): ArmTotals {
  const sum = (name: string): number => Number(sums[name] ?? 0);
  const under = (kind: string) => Object.fromEntries(Object.keys(sums).filter((name) => name.startsWith(kind)).sort().map((name) => [name.slice(kind.length), sum(name)]));
  return {
    ended: sum('ended'), completed: sum('completed'), failed: sum('failed'), stop_reasons: under('stop:'), errors: under('error:'), validation_failures: sum('validation_failures'),
    tool_calls: sum('tool_calls'), tool_errors: sum('tool_errors'), active_s: sum('active_s'), cost_usd: sum('cost_usd'),
  };
}

function recordOf(flat: unknown): Record<string, string> {
  const parts = flat as string[];
  return Object.fromEntries(Array.from({ length: parts.length / 2 }, (_, index) => [parts[index * 2]!, parts[index * 2 + 1]!]));
}
