/**
 * Tables in the docs that are made from the code: `npm run docs:generate` writes them, a test compares.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { errorMeanings, errorTypes, recoveryTable, type ErrorType } from '@treadle/core';
import { certainSigns } from '@treadle/models';
import { labelMeanings, metricDefinitions, type MetricDefinition } from '@treadle/telemetry';
import { parse } from 'yaml';

const docs = join(import.meta.dirname, '../../docs');
export const machinePage = join(docs, 'turn-machine.md');
export const metricsPage = join(docs, 'reference/metrics.md');
export const errorsPage = join(docs, 'reference/errors.md');

/** The moves of `decide-failed.ts` that come before the table; a test plays each. */
const ownMoves: Partial<Record<ErrorType, string>> = {
  empty_response: '`reask`, up to `max_reasks`',
  output_truncated: '`continue_prompt` (text) or `enlarge_output` (a cut call), up to `max_continuations`',
  context_overflow: '`reactive_compact`, then `aggressive_snip`',
  payload_too_large: '`reactive_compact`, then `aggressive_snip`',
  output_cap_invalid: '`clamp_output`, while a reply of 16 tokens is left',
  feature_unsupported: '`drop_feature`: images, or `stream_options`, once each; nothing else can be left out',
  image_too_large: '`shrink_image` twice, then `remove_image`',
};

export function recoverySection(): string {
  const rows = errorTypes.map((type) => {
    const { same_model_retries, fallback, rotate, park, exhausted } = recoveryTable[type];
    return `| \`${type}\` | ${ownMoves[type] ?? ''} | ${rotate ? 'yes' : 'no'} | ${same_model_retries === 0 ? 'no' : `${same_model_retries} times`} | ${fallback ? 'yes' : 'no'} | ${park ? 'yes' : 'no'} | \`${exhausted}\` |`;
  });
  return ['| error_type | its own move first | another key | again on the same model | next model | waits for the reset | else the run ends |', '|---|---|---|---|---|---|---|', ...rows].join('\n');
}

export function meaningsSection(): string {
  const rows = errorTypes.map((type) => {
    const { statuses, codes } = certainSigns(type);
    return `| \`${type}\` | ${errorMeanings[type]} | ${statuses.join(', ')} | ${codes.map((code) => `\`${code}\``).join(', ')} |`;
  });
  return ['| error_type | means | statuses | codes |', '|---|---|---|---|', ...rows].join('\n');
}

const cell = (text: string): string => text.replaceAll('|', '\\|');

export function metricsSection(): string {
  const rows = Object.values(metricDefinitions).map((metric: MetricDefinition) => {
    const where = metric.role === undefined ? 'API, workers' : { api: 'API', worker: 'workers' }[metric.role];
    return `| \`${metric.name}\` | ${metric.type} | ${metric.labels.map((label) => `\`${label}\``).join(', ')} | ${unitOf(metric)} | ${where} | ${metric.fleet === true ? '`max`' : '`sum`'} | ${cell(metric.help)} |`;
  });
  return ['| metric | type | labels | unit | on | over processes | means |', '|---|---|---|---|---|---|---|', ...rows].join('\n');
}

function unitOf({ name }: MetricDefinition): string {
  if (/_seconds(_total)?$/.test(name)) return 'seconds';
  if (/_usd_total$/.test(name)) return 'US dollars';
  return /tokens_total$/.test(name) ? 'tokens' : '1';
}

export function labelsSection(): string {
  const rows = Object.entries(labelMeanings).map(([label, meaning]) => `| \`${label}\` | ${cell(meaning)} |`);
  return ['| label | values |', '|---|---|', ...rows].join('\n');
}

interface Rules { readonly groups: readonly { readonly rules: readonly { readonly record?: string; readonly alert?: string; readonly expr: string }[] }[] }

/** What Prometheus records by our rules: the comment above each, and who asks for it. */
export function recordsSection(): string {
  const [recording, alerts] = ['recording.yml', 'alerts.yml'].map((name) => readFileSync(join(docs, '../deploy/prometheus', name), 'utf8'));
  const rulesOf = (text: string) => (parse(text) as Rules).groups.flatMap(({ rules }) => rules);
  const rows = rulesOf(recording!).map(({ record = '', expr }) => {
    const [, means = ''] = new RegExp(`# (.*)\\n *- record: ${record}\\n`).exec(recording!) ?? [];
    const users = rulesOf(alerts!).filter((rule) => rule.expr.includes(record)).map(({ alert = '' }) => `[${alert}](../runbook.md#${alert.toLowerCase()})`);
    return `| \`${record}\` | ${cell(means)} | \`${cell(expr)}\` | ${users.join(', ')} |`;
  });
  return ['| record | means | is | alerts |', '|---|---|---|---|', ...rows].join('\n');
}

/** By the name in a page's comments: what stands between them. */
const sections: Readonly<Record<string, () => string>> = { recovery: recoverySection, meanings: meaningsSection, metrics: metricsSection, labels: labelsSection, records: recordsSection };

/** The page with its tables as the code has them now. */
export function withTables(page: string): string {
  return Object.entries(sections).reduce((text, [name, section]) =>
    text.replace(new RegExp(`<!-- ${name}:begin -->[^]*<!-- ${name}:end -->`), () => `<!-- ${name}:begin -->\n${section()}\n<!-- ${name}:end -->`), page);
}

if (process.argv[1] === import.meta.filename) {
  for (const page of [machinePage, errorsPage, metricsPage]) writeFileSync(page, withTables(readFileSync(page, 'utf8')));
}
