/** What each label may say: a closed set, or names from the configuration. Never an id, a tenant, a user, or what a model or a tool said. */
import { errorTypes, recoveryActions, recoverySites, runStatuses, statusOfStopReason } from '@treadle/core';
import type { metricDefinitions } from './definitions.ts';

type Definitions = typeof metricDefinitions;
type Label = Definitions[keyof Definitions]['labels'][number];

const code = (words: readonly string[]): string => words.map((word) => `\`${word}\``).join(', ');

export const labelMeanings: Readonly<Record<Label, string>> = {
  agent: 'an agent of the configuration', chain: 'a chain of the configuration', model: 'a model of the configuration',
  from_model: 'the model that a run left', to_model: 'the model that it went to', position: 'place in the chain, from `0`',
  status: code(runStatuses), stop_reason: code(Object.keys(statusOfStopReason)),
  outcome: `of turns ${code(['ended', 'fenced', 'failed'])}; of requests to models ${code(['replied', 'failed', 'skipped', 'aborted'])}; of tool calls ${code(['ok', 'error', 'unknown', 'denied', 'cancelled', 'deduplicated'])}; of segments ${code(['ok', 'merged', 'failed'])}; of schedules' times ${code(['fired', 'skipped', 'failed'])}; of webhooks ${code(['delivered', 'failed', 'dead'])}`,
  error_type: `[a failure of a model](errors.md#of-models): ${code(errorTypes)}, or \`none\`; of validation errors the validator's word (the first fifty, then \`other\`)`,
  direction: code(['input', 'output', 'cached', 'wasted']), site: `${code(recoverySites)}, or \`none\``, action: code(recoveryActions.filter((action) => action !== 'fail')),
  validator: 'a validator of the configuration, or one of the host', tool: 'a tool that the run was given; names that models make up are `other`',
  queue: '`turns-0`, `turns-1` … one for each shard', state: code(['waiting', 'active', 'delayed']),
  breaker: '`model:<name>`, `host:<host:port>` or `credential:<fingerprint>`', to: code(['closed', 'half_open', 'open']),
  decision: code(['promote', 'rollback', 'pause', 'set']), result: code(['identical', 'different', 'failed']),
};
