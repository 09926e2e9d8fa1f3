/**
 * Plays one incident for people: `npm run incident -- slow-redis [calm seconds]`; with `any` one by chance, whose name is told at the end. Starts a system
 * under load with a Prometheus and our alerts beside it, is calm for a while, then lets the fault happen, until Ctrl-C.
 */
import { randomInt } from 'node:crypto';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { root } from '../e2e/processes.ts';
import { hasPrometheus, startPrometheus } from '../operate/prometheus.ts';
import { incidents, startLoadedSystem } from './incidents.ts';

const [asked = '', calm = '60'] = process.argv.slice(2);
const names = Object.keys(incidents);
const name = asked === 'any' ? names[randomInt(names.length)]! : asked;
const incident = incidents[name];
if (incident === undefined || !/^\d+$/.test(calm)) {
  process.stderr.write(`usage: npm run incident -- any|${names.join('|')} [calm seconds]\n`);
  process.exit(2);
}
if (!hasPrometheus()) process.exit(3);

const stopped = new Promise<void>((resolve) => { for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => { resolve(); }); });
const system = await startLoadedSystem({ perSecond: 4 });
const prometheus = await startPrometheus({ 'treadle-api': [system.stage.api.url], 'treadle-worker': system.workers.map(({ url }) => url) }, { rules: ['recording.yml', 'alerts.yml'].map((name) => join(root, 'deploy/prometheus', name)) });
const shell = Object.entries({ ...system.stage.env, TREADLE_URL: system.stage.api.url }).map(([variable, value]) => `${variable}='${value}'`).join(' ');
process.stdout.write(`Prometheus  ${prometheus.url}/alerts\nAPI         ${system.stage.api.url}\nworkers     ${system.workers.map(({ url }) => url).join(' ')}\nRedis       127.0.0.1:${system.redisPort} on its own machine; from the others' as in REDIS_URL\nFor ./treadle in another shell:\nexport ${shell}\nCalm for ${calm} s; Ctrl-C ends everything.\n`);
await Promise.race([sleep(Number(calm) * 1000, undefined, { ref: false }), stopped]);
incident.begin(system);
process.stdout.write('Something has happened: runs are slow. docs/runbook.md says where to look.\n');
await stopped;
process.stdout.write(`It was ${name}. ${incident.title}\n`);
await Promise.all([prometheus.stop(), system.stop()]);
// Handles that do not close keep node busy for ever in its own clearing up.
process.exit();
