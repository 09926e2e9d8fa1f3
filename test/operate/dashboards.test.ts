/** The dashboards: their files are current, their metrics exist, and a real Prometheus that watched a real load has data for every query. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { dashboards, dashboardText } from '@treadle/deploy';
import { metricDefinitions } from '@treadle/telemetry';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { root, until } from '../e2e/processes.ts';
import { startLoad, type Load } from './load.ts';
import { hasPrometheus, startPrometheus, type Prometheus } from './prometheus.ts';

const folder = join(root, 'deploy/grafana/dashboards');

interface Panel { readonly type: string; readonly title?: string; readonly description?: string; readonly targets?: readonly { readonly expr: string }[]; readonly panels?: readonly Panel[]; readonly fieldConfig?: { readonly defaults: { readonly unit?: string } }; readonly gridPos?: { readonly x: number; readonly y: number; readonly w: number; readonly h: number } }
interface Variable { readonly name: string; readonly definition?: string }
interface DashboardFile { readonly uid: string; readonly panels: readonly Panel[]; readonly templating: { readonly list: readonly Variable[] } }

const files = Object.keys(dashboards);
const read = (file: string): DashboardFile => JSON.parse(readFileSync(join(folder, file), 'utf8')) as DashboardFile;
const panelsOf = (file: string): Panel[] => read(file).panels.flatMap((panel) => [panel, ...panel.panels ?? []]).filter((panel) => panel.type !== 'row');
const queries = files.flatMap((file) => panelsOf(file).flatMap((panel) => (panel.targets ?? []).map(({ expr }) => ({ file, title: panel.title ?? '', expr }))));
const definitions = files.flatMap((file) => read(file).templating.list.flatMap(({ definition }) => (definition === undefined ? [] : [{ file, definition }])));

test.each(files)('%s is as the code makes it (npm run dashboards:generate)', (file) => {
  expect(readFileSync(join(folder, file), 'utf8')).toBe(dashboardText(dashboards[file]!()));
});

test('there is no other dashboard', () => {
  expect(readdirSync(folder).sort()).toEqual([...files].sort());
});

test('panels have a title, a description, a unit where they show numbers, and something to show', () => {
  for (const file of files) for (const panel of panelsOf(file)) {
    expect(panel, `${file} ${panel.title ?? ''}`).toMatchObject({ title: expect.stringMatching(/./) as string, description: expect.stringMatching(/\.$/) as string, targets: expect.arrayContaining([expect.anything()]) as unknown[] });
    if (panel.type === 'timeseries' || panel.type === 'stat') expect(panel.fieldConfig?.defaults.unit, `${file} ${panel.title ?? ''}`).toMatch(/./);
  }
});

test('queries and variables name metrics that exist, and together nearly all that there are', () => {
  const known = new Set<string>(Object.values(metricDefinitions).map(({ name }) => name));
  const named = [...queries.map(({ expr }) => expr), ...definitions.map(({ definition }) => definition)].flatMap((text) => [...text.matchAll(/\b(treadle_[a-z_]+)/g)].map((match) => match[1]!.replace(/_bucket$/, '')));
  expect(named.filter((name) => !known.has(name))).toEqual([]);
  expect([...known].filter((name) => !named.includes(name))).toEqual([]);
});

test.each(files)('%s leaves no holes: every line of panels is full, and nothing overlaps', (file) => {
  const places = panelsOf(file).map(({ gridPos }) => gridPos!);
  const lines = Object.values(Object.groupBy(places, ({ y }) => y)).map((line) => line!.sort((a, b) => a.x - b.x));
  for (const line of lines) {
    expect(line.map(({ x }) => x)).toEqual(line.map((_, index) => line.slice(0, index).reduce((sum, { w }) => sum + w, 0)));
    expect(line.reduce((sum, { w }) => sum + w, 0), `${file} ${JSON.stringify(line)}`).toBe(24);
    expect(new Set(line.map(({ h }) => h)).size).toBe(1);
  }
  const bottoms = lines.map(([first]) => first!).sort((a, b) => a.y - b.y);
  bottoms.slice(1).forEach(({ y }, index) => { expect(y).toBeGreaterThanOrEqual(bottoms[index]!.y + bottoms[index]!.h); });
});

/** As Grafana asks with everything chosen. */
const asked = (expr: string): string => expr.replaceAll('$__rate_interval', '20s').replaceAll(/"\$\w+"/g, '".*"');
/** What stands in for series that are not there. */
const standIn = / or (?:vector\(0\)|0 \* max\(treadle_turn_slots\{job=~"\$job"\}\))$/;

describe.skipIf(!hasPrometheus())('by promtool', () => {
  const expressionOf = (file: string, title: string) => queries.filter((query) => query.file === file && query.title === title).map(({ expr }) => asked(expr));
  interface Case { readonly expr: string; readonly exp_samples?: readonly { readonly labels: string; readonly value: number }[] }

  /** What these expressions give a minute and a half after series like these began. */
  function check(series: Readonly<Record<string, string>>, cases: readonly Case[]): void {
    const dir = mkdtempSync(join(tmpdir(), 'treadle-promtool-'));
    const file = join(dir, 'test.yml');
    writeFileSync(file, JSON.stringify({ evaluation_interval: '5s', tests: [{ interval: '5s', input_series: Object.entries(series).map(([name, values]) => ({ series: name, values })), promql_expr_test: cases.map((each) => ({ eval_time: '90s', ...each })) }] }));
    const { status, stdout, stderr } = spawnSync('promtool', ['test', 'rules', file], { encoding: 'utf8' });
    rmSync(dir, { recursive: true });
    expect(status, `${stdout}${stderr}`).toBe(0);
  }

  test('no token is drawn twice: what was cached is no longer in the input', () => {
    const tokens = expressionOf('models.json', 'Tokens');
    expect(tokens).toHaveLength(4);
    const of = (model: string, direction: string): string => `treadle_model_tokens_total{job="w",model="${model}",direction="${direction}"}`;
    // A second, of what comes every 5 s below: input that was not cached, cached, output, wasted.
    const values: readonly Readonly<Record<string, number>>[] = [{ a: 400, b: 40 }, { a: 300 }, { a: 60, b: 60 }, { a: 5 }];
    check({ [of('a', 'input')]: '0+3500x40', [of('a', 'cached')]: '0+1500x40', [of('a', 'output')]: '0+300x40', [of('a', 'wasted')]: '0+25x40', [of('b', 'input')]: '0+200x40', [of('b', 'output')]: '0+300x40' },
      tokens.map((expr, index) => ({ expr, exp_samples: Object.entries(values[index]!).map(([model, value]) => ({ labels: `{model="${model}"}`, value })) })));
  });

  test('numbers that begin with the first event stand at 0 before it where a worker answers, and are unknown where none does', () => {
    const begin = queries.filter(({ expr }) => standIn.test(expr) && !expr.endsWith('vector(0)')).map(({ expr }) => asked(expr));
    expect(begin.length).toBeGreaterThanOrEqual(6);
    check({ 'treadle_turn_slots{job="w",instance="a"}': '20+0x40', 'treadle_turn_slots{job="w",instance="b"}': '20+0x40' }, begin.map((expr) => ({ expr, exp_samples: [{ labels: '{}', value: 0 }] })));
    check({ 'up{job="w"}': '0x40' }, begin.map((expr) => ({ expr })));
    check({ 'up{job="w"}': '0x40' }, expressionOf('fleet.json', 'Workers').map((expr) => ({ expr, exp_samples: [{ labels: '{}', value: 0 }] })));
    // Requests that rest are no division by nothing.
    check({ 'treadle_turn_slots{job="w"}': '20+0x40', 'treadle_model_requests_total{job="w",chain="c",model="m",outcome="replied",error_type="none"}': '9+0x40', 'treadle_model_requests_total{job="w",chain="c",model="m",outcome="failed",error_type="timeout"}': '3+0x40' },
      expressionOf('models.json', 'Failed').map((expr) => ({ expr, exp_samples: [{ labels: '{}', value: 0 }] })));
    check({ 'treadle_turn_slots{job="w"}': '20+0x40', 'treadle_model_requests_total{job="w",chain="c",model="m",outcome="replied",error_type="none"}': '0+30x40', 'treadle_model_requests_total{job="w",chain="c",model="m",outcome="failed",error_type="timeout"}': '0+10x40' },
      expressionOf('models.json', 'Failed').map((expr) => ({ expr, exp_samples: [{ labels: '{}', value: 0.25 }] })));
  });
});

describe.skipIf(!hasPrometheus())('with a Prometheus that watched a load', () => {
  /** Since the load began. */
  const seconds = (): number => (performance.now() - beganMs) / 1000;
  let beganMs = 0;
  let load: Load;
  let prometheus: Prometheus;

  beforeAll(async () => {
    load = await startLoad({ workers: 2, chains: true, env: { TREADLE_BREAKER_VOLUME: '3' } });
    prometheus = await startPrometheus({ 'treadle-api': [load.stage.api.url], 'treadle-worker': load.workers.map(({ url }) => url) });
    beganMs = performance.now();
    // Twice, so that what began with the first is seen to rise.
    for (let round = 0; round < 2; round++) {
      await load.play(2);
      await load.takeOver();
      await load.shake();
      await load.repeat();
      await new Promise((resolve) => { setTimeout(resolve, 2000); });
    }
    await until('an ended run is audited', async () => (await prometheus.range('treadle_replay_audits_total{result="identical"} > 0', seconds())).length > 0, 90_000);
  }, 300_000);
  afterAll(async () => {
    await prometheus.stop();
    await load.stop();
  });

  test.each(queries)('$file, $title: $expr', async ({ expr }) => {
    const found = await prometheus.range(asked(expr.replace(standIn, '')), seconds());
    expect(found.flatMap(({ values }) => values.map(([, value]) => Number(value))).filter((value) => !Number.isNaN(value)).length).toBeGreaterThan(0);
  });

  test.each(definitions)('$file offers what can be chosen: $definition', async ({ definition }) => {
    const [, metric, label] = /^label_values\((\w+), (\w+)\)$/.exec(definition) ?? [];
    expect((await prometheus.labelValues(label!, metric!)).length).toBeGreaterThan(0);
  });
});
