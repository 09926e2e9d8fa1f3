/**
 * Pages that list things list what the code has, and nothing else.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { problemTitles } from '@treadle/api';
import { defaultBaseUrls, environmentTable } from '@treadle/config';
import { defaultLimits, errorTypes, eventTypes, mayMove, recoveryActions, recoverySites, recoveryTable, runStatuses, statusOfStopReason } from '@treadle/core';
import { metricDefinitions, operations, spanAttributeNames, spanNames } from '@treadle/telemetry';
import { describe, expect, test } from 'vitest';
import { errorsPage, machinePage, metricsPage, withTables } from './generate.ts';

const providers = ['ollama', 'openai', 'anthropic'] as const;
const docs = join(import.meta.dirname, '../../docs');
const page = (name: string): string => readFileSync(join(docs, name), 'utf8');

/** Cells of the table under a heading (or the first one), without its head. */
function table(text: string, heading?: string): string[][] {
  const from = heading === undefined ? text : text.slice(text.indexOf(`## ${heading}`));
  const lines = from.split('\n');
  const start = lines.findIndex((line) => line.startsWith('|---'));
  const end = lines.findIndex((line, index) => index > start && !line.startsWith('|'));
  return lines.slice(start + 1, end).map((line) => line.slice(1, -1).split('|').map((cell) => cell.trim()));
}

const code = (cell: string | undefined): string => (cell ?? '').replaceAll('`', '');
const codes = (cell: string | undefined): string[] => [...(cell ?? '').matchAll(/`([^`]+)`/g)].map((match) => match[1]!);

describe('events.md', () => {
  test('has every type of event', () => {
    expect(table(page('reference/events.md')).map((row) => code(row[0])).sort()).toEqual([...eventTypes].sort());
  });

  test('has every status and where it may move', () => {
    const rows = table(page('reference/events.md'), 'Statuses');
    expect(rows.map((row) => code(row[0]))).toEqual([...runStatuses]);
    for (const [from, to] of rows) {
      expect(codes(to), from).toEqual(runStatuses.filter((status) => mayMove(code(from) as (typeof runStatuses)[number], status)).sort((a, b) => codes(to).indexOf(a) - codes(to).indexOf(b)));
    }
  });

  test('has every stop reason with its status', () => {
    expect(Object.fromEntries(table(page('reference/events.md'), 'Stop reasons').map((row) => [code(row[0]), row[1]]))).toEqual(statusOfStopReason);
  });
});

describe('errors.md', () => {
  test('has every code of the API', () => {
    expect(table(page('reference/errors.md'), 'Of the HTTP API').map((row) => [code(row[0]), row[2]])).toEqual(Object.entries(problemTitles));
  });

  test('has the recovery table as the code has it', () => {
    const written = table(page('reference/errors.md'), 'Of models').map(([type, retries, hop, end]) => [code(type), retries, hop, code(end)]);
    const real = errorTypes.map((type) => {
      const { same_model_retries, fallback, exhausted } = recoveryTable[type];
      return [type, same_model_retries === 0 ? 'no' : `${same_model_retries} times`, fallback ? 'yes' : 'no', exhausted];
    });
    expect(written).toEqual(real);
  });

  test('has every site and action', () => {
    const text = page('reference/errors.md');
    expect(codes(/^Sites: (.*)$/m.exec(text)?.[1])).toEqual([...recoverySites]);
    expect(codes(/^Actions: (.*)$/m.exec(text)?.[1])).toEqual([...recoveryActions]);
  });
});

test.each([['turn-machine.md', machinePage, 'recovery'], ['errors.md', errorsPage, 'meanings'], ['metrics.md', metricsPage, 'metrics'], ['metrics.md', metricsPage, 'labels'], ['metrics.md', metricsPage, 'records']])('%s has its table as the code has it (npm run docs:generate)', (_, file, name) => {
  const text = readFileSync(file, 'utf8');
  expect(text).toContain(`<!-- ${name}:begin -->`);
  expect(text).toBe(withTables(text));
});

describe('metrics.md', () => {
  test('has every metric and every label once, and none that is not there', () => {
    expect(table(page('reference/metrics.md')).map((row) => code(row[0]))).toEqual(Object.values(metricDefinitions).map(({ name }) => name));
    const labels = new Set(Object.values(metricDefinitions).flatMap((each) => [...each.labels]));
    expect(table(page('reference/metrics.md'), 'Labels').map((row) => code(row[0])).sort()).toEqual([...labels].sort());
  });

  test('says of every record what it means', () => {
    const rows = table(page('reference/metrics.md'), 'Records');
    expect(rows.length).toBeGreaterThan(5);
    for (const [record, means] of rows) expect(means, record).toMatch(/^[A-Z].+\.$/);
  });

  test('names no metric elsewhere in the docs that is not there', () => {
    const known = new Set(Object.values(metricDefinitions).map(({ name }): string => name));
    const files = readdirSync(docs, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.md'));
    const named = files.flatMap((file) => [...page(file).matchAll(/`(treadle_[a-z_]+)/g)].map((match) => match[1]!.replace(/_(bucket|count|sum)$/, '')));
    expect(named.filter((name) => !known.has(name))).toEqual([]);
  });
});

test('tracing.md has every span and every attribute, and names none that is not there', () => {
  const text = page('tracing.md');
  const spans = table(text, 'Spans').map((row) => code(row[0]).split(' ')[0]);
  expect(spans.sort()).toEqual([...Object.values(operations), ...Object.values(spanNames)].sort());
  const named = [...text.matchAll(/`((?:gen_ai|mcp|treadle|error|network)\.[a-z_.]+)`/g)].map((match) => match[1]!);
  expect([...new Set(named)].sort()).toEqual([...spanAttributeNames].sort());
});

test.each(providers)('there is a page about the provider %s, with its default address', (provider) => {
  expect(page(`providers/${provider}.md`)).toContain(`\`${defaultBaseUrls[provider]}\``);
});

test('environment.md has every variable with its default', () => {
  const rows = table(page('reference/environment.md')).map((row) => [code(row[0]), code(row[1])]);
  expect(rows).toEqual(Object.values(environmentTable).map((variable) => [variable.name, variable.default === null ? '' : String(variable.default)]));
});

test('limits.md has every limit that is enforced, with its default', () => {
  expect(Object.fromEntries(table(page('limits.md')).map((row) => [code(row[0]), row[1] === 'none' ? null : Number(row[1])]))).toEqual(defaultLimits);
});
