/** Each incident is seen on the panels that the runbook names, by a real Prometheus, and not mistaken for another. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { root, until } from '../e2e/processes.ts';
import { hasPrometheus, startPrometheus, type Prometheus } from '../operate/prometheus.ts';
import { incidents, startLoadedSystem, type Incident, type Sign } from './incidents.ts';

interface Panel { readonly title?: string; readonly targets?: readonly { readonly expr: string }[]; readonly panels?: readonly Panel[] }

/** The query of a panel with everything chosen, as Grafana would ask it. */
function queryOf({ dashboard, title, query = 0 }: Sign): string {
  const { panels } = JSON.parse(readFileSync(join(root, `deploy/grafana/dashboards/${dashboard}.json`), 'utf8')) as { panels: readonly Panel[] };
  const found = panels.flatMap((panel) => [panel, ...panel.panels ?? []]).filter((panel) => panel.title === title);
  const expr = found[0]?.targets?.[query]?.expr;
  if (expr === undefined) throw new Error(`${dashboard} has no panel ${title}`);
  return expr.replaceAll('$__rate_interval', '8s').replaceAll(/"\$\w+"/g, '".*"');
}

const runbook = readFileSync(join(root, 'docs/runbook.md'), 'utf8');
/** Of a system that has started: its first turns wait for their tools' servers, which is no calm. */
const settlingS = 10;
const calmS = 12;
const troubleS = 20;

test('the runbook names each incident and the panels on which it is seen', () => {
  for (const { signs } of Object.values(incidents)) for (const { title } of signs) expect(runbook).toContain(title);
});

/** The largest number that the panel shows of what the sign is about. */
async function largest(prometheus: Prometheus, sign: Sign, seconds: number): Promise<number> {
  const found = await prometheus.range(queryOf(sign), seconds);
  const shown = found.filter(({ metric }) => Object.entries(sign.labels ?? {}).every(([label, value]) => metric[label] === value));
  return Math.max(0, ...shown.flatMap(({ values }) => values.map(([, value]) => Number(value))).filter((value) => !Number.isNaN(value)));
}

/** Systems that are being started now: together they keep this machine busy. */
let starting = 0;

async function played(name: string, incident: Incident, release: (() => Promise<void>)[]): Promise<void> {
  starting += 1;
  const system = await startLoadedSystem({ perSecond: 3 }).finally(() => { starting -= 1; });
  release.push(() => system.stop());
  const prometheus = await startPrometheus({ 'treadle-api': [system.stage.api.url], 'treadle-worker': system.workers.map(({ url }) => url) });
  release.push(() => prometheus.stop());
  await until('the others have started, too', () => starting === 0, 60_000);
  // Rates look back for 8 s.
  await sleep((settlingS + calmS + 8) * 1000);
  const others = Object.entries(incidents).filter(([each]) => each !== name).map(([, { signs: [first] }]) => first);
  const before = new Map(await Promise.all([...incident.signs, ...others].map(async (sign) => [sign, await largest(prometheus, sign, calmS)] as const)));
  incident.begin(system);
  await sleep(troubleS * 1000);
  for (const sign of [...incident.signs, ...others]) {
    const [calm, trouble] = [before.get(sign)!, await largest(prometheus, sign, troubleS)];
    const seen = sign.rises === Infinity ? calm === 0 && trouble > 0 : trouble >= sign.rises * calm && trouble >= (sign.least ?? 0);
    expect(seen, `${sign.dashboard}, ${sign.title} ${JSON.stringify(sign.labels ?? {})}: ${calm} before, ${trouble} in the incident`).toBe(incident.signs.includes(sign));
  }
}

// At the same time: they wait more than they work.
describe.skipIf(!hasPrometheus()).concurrent('the panels that lead to its cause show an incident, and those that would lead elsewhere do not', () => {
  test.each(Object.entries(incidents).map(([name, incident]) => ({ name, incident, title: incident.title })))('$name: $title', async ({ name, incident }) => {
    const release: (() => Promise<void>)[] = [];
    try {
      await played(name, incident, release);
    } finally {
      for (const each of release.reverse()) await each();
    }
  }, 180_000);
});
