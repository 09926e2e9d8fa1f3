/** Alerts and recording rules: what Prometheus says of them, that their metrics exist, and that each alert is in the runbook. */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { metricDefinitions } from '@treadle/telemetry';
import { describe, expect, test } from 'vitest';
import { root } from '../e2e/processes.ts';
import { hasPrometheus } from './prometheus.ts';

const folder = join(root, 'deploy/prometheus');
const text = (name: string): string => readFileSync(join(folder, name), 'utf8');
const all = (source: string, form: RegExp): string[] => [...source.matchAll(form)].map((match) => match[1]!);

const alerts = all(text('alerts.yml'), /- alert: (\w+)/g);

describe.skipIf(!hasPrometheus())('promtool', () => {
  test.each([
    ['takes the configuration', ['check', 'config', 'prometheus.yml']], ['takes that of the containers', ['check', 'config', 'containers.yml']], ['takes the rules', ['check', 'rules', 'recording.yml', 'alerts.yml']],
    ['sees every alert fire when it should and be silent when it should', ['test', 'rules', 'tests/alerts.yml']],
  ])('%s', (_name, args) => {
    const { status, stdout, stderr } = spawnSync('promtool', args, { cwd: folder, encoding: 'utf8' });
    expect(status, `${stdout}${stderr}`).toBe(0);
  });
});

test('each alert is tested firing and silent', () => {
  const cases = text('tests/alerts.yml');
  const silent = all(cases, /\{ eval_time: \w+, alertname: (\w+) \}/g);
  const firing = all(cases, /alertname: (\w+)\n\s+exp_alerts/g);
  expect([...new Set(silent)].sort()).toEqual([...alerts].sort());
  expect([...new Set(firing)].sort()).toEqual([...alerts].sort());
});

test('each alert has its section in the runbook, which says what it means, what to look at and what to do, and none other has', () => {
  const page = readFileSync(join(root, 'docs/runbook.md'), 'utf8');
  // The first tells slow runs apart, whoever noticed them (test/incidents).
  const [slow, ...sections] = page.split('\n## ').slice(1);
  expect(slow).toMatch(/^Runs are slow\n/);
  expect(sections.map((section) => section.split('\n')[0])).toEqual(alerts);
  for (const section of sections) for (const part of ['**Means:**', '**Look at:**', '**Do:**']) expect(section).toContain(part);
  expect(all(text('alerts.yml'), /runbook: docs\/runbook\.md#(\w+)/g)).toEqual(alerts.map((name) => name.toLowerCase()));
  for (const [index, severity] of all(text('alerts.yml'), /severity: (\w+)/g).entries()) expect(sections[index], alerts[index]).toContain(`*${severity}.*`);
});

test('rules name metrics that exist, and records that are recorded', () => {
  const source = `${text('recording.yml')}${text('alerts.yml')}`;
  const known = new Set<string>(Object.values(metricDefinitions).map(({ name }) => name));
  const named = all(source, /\b(treadle_[a-z_]+)/g).map((name) => name.replace(/_bucket$/, ''));
  expect(named.filter((name) => !known.has(name))).toEqual([]);
  const recorded = new Set(all(source, /record: (\S+)/g));
  expect(all(source, /\b(treadle:[a-z0-9_:]+)/g).filter((name) => !recorded.has(name))).toEqual([]);
});
