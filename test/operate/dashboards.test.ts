/** The dashboards: their files are current, their metrics exist, and a real Prometheus that watched a real load has data for every query. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { dashboards, dashboardText } from '@treadle/deploy';
import { metricDefinitions } from '@treadle/telemetry';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { root, until } from '../e2e/processes.ts';
import { startLoad, type Load } from './load.ts';
import { hasPrometheus, startPrometheus, type Prometheus } from './prometheus.ts';

const folder = join(root, 'deploy/grafana/dashboards');

interface Panel { readonly type: string; readonly title?: string; readonly description?: string; readonly targets?: readonly { readonly expr: string }[]; readonly panels?: readonly Panel[]; readonly fieldConfig?: { readonly defaults: { readonly unit?: string } } }
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
      await new Promise((resolve) => { setTimeout(resolve, 2000); });
    }
    await until('an ended run is audited', async () => (await prometheus.range('treadle_replay_audits_total{result="identical"} > 0', seconds())).length > 0, 90_000);
  }, 300_000);
  afterAll(async () => {
    await prometheus.stop();
    await load.stop();
  });

  /** As Grafana asks with everything chosen. */
  const asked = (expr: string): string => expr.replaceAll('$__rate_interval', '20s').replaceAll(/"\$\w+"/g, '".*"');

  test.each(queries)('$file, $title: $expr', async ({ expr }) => {
    const found = await prometheus.range(asked(expr), seconds());
    expect(found.flatMap(({ values }) => values.map(([, value]) => Number(value))).filter((value) => !Number.isNaN(value)).length).toBeGreaterThan(0);
  });

  test.each(definitions)('$file offers what can be chosen: $definition', async ({ definition }) => {
    const [, metric, label] = /^label_values\((\w+), (\w+)\)$/.exec(definition) ?? [];
    expect((await prometheus.labelValues(label!, metric!)).length).toBeGreaterThan(0);
  });
});
