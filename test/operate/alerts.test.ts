/** Alerts and recording rules: what Prometheus says of them, that their metrics exist, and that each alert is in the runbook. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { dashboards } from '@treadle/deploy';
import { metricDefinitions } from '@treadle/telemetry';
import { describe, expect, test } from 'vitest';
import { root, treadle } from '../e2e/processes.ts';
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

const runbook = readFileSync(join(root, 'docs/runbook.md'), 'utf8');
/** Code in the text that asks Prometheus for something. */
const asked = all(runbook, /`([^`\n]+)`/g).filter((code) => /\b(?:treadle[_:]\w+|up\b)/.test(code) && !/^(?:docker|curl|\.\/)/.test(code));

/** Names of series. */
const known = new Set<string>(Object.values(metricDefinitions).flatMap(({ type, name }) => (type === 'histogram' ? [`${name}_bucket`, `${name}_sum`, `${name}_count`] : [name])));

test('the runbook sends nobody to a panel, a metric or a command that is not there', async () => {
  const panels = new Set(Object.values(dashboards).flatMap((build) => JSON.stringify(build()).match(/"title":"[^"]+"/g) ?? []).map((title) => title.slice(9, -1)));
  const bold = all(runbook, /\*\*([^*]+)\*\*/g).filter((words) => !/^(?:Means:|Look at:|Do:|bold)$/.test(words));
  expect(bold.length).toBeGreaterThan(30);
  expect(bold.filter((words) => !panels.has(words))).toEqual([]);
  expect(asked.length).toBeGreaterThan(5);
  expect(asked.flatMap((code) => all(code, /\b(treadle_[a-z_]+)/g)).filter((name) => !known.has(name))).toEqual([]);
  const commands = new Set(all(runbook, /`\.\/treadle ([a-z]+(?: [a-z]+)?)/g));
  expect(commands.size).toBeGreaterThan(6);
  for (const command of commands) {
    const { stdout } = await treadle([command.split(' ')[0]!, '--help']);
    expect(stdout, command).toMatch(new RegExp(`\\btreadle ${command}\\b`));
  }
}, 60_000);

test.skipIf(!hasPrometheus())('Prometheus understands every query of the runbook', () => {
  const dir = mkdtempSync(join(tmpdir(), 'treadle-runbook-'));
  try {
    const file = join(dir, 'rules.yml');
    writeFileSync(file, JSON.stringify({ groups: [{ name: 'runbook', rules: asked.map((expr, index) => ({ record: `asked:${index}`, expr })) }] }));
    const { status, stdout, stderr } = spawnSync('promtool', ['check', 'rules', file], { encoding: 'utf8' });
    expect(status, `${stdout}${stderr}`).toBe(0);
  } finally {
    rmSync(dir, { recursive: true });
  }
});

test('rules name metrics that exist, and records that are recorded', () => {
  const source = `${text('recording.yml')}${text('alerts.yml')}`;
  expect(all(source, /\b(treadle_[a-z_]+)/g).filter((name) => !known.has(name))).toEqual([]);
  const recorded = new Set(all(source, /record: (\S+)/g));
  expect(all(source, /\b(treadle:[a-z0-9_:]+)/g).filter((name) => !recorded.has(name))).toEqual([]);
});
