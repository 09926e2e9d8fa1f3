/** A real Prometheus and its tool, for tests; Debian's package is installed where that can be done. */
import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '@treadle/testkit';
import { until } from '../e2e/processes.ts';

function found(): boolean {
  return ['prometheus', 'promtool'].every((name) => spawnSync('sh', ['-c', `command -v ${name}`]).status === 0);
}

/** Whether the programs are there, now. Says so where they are not. */
export function hasPrometheus(): boolean {
  if (found()) return true;
  if (process.platform === 'linux' && process.getuid?.() === 0 && spawnSync('sh', ['-c', 'command -v apt-get']).status === 0) {
    // The package starts a server of its own unless a policy forbids it; we only want the programs.
    const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive', RUNLEVEL: '1' };
    spawnSync('apt-get', ['update', '-qq'], { stdio: 'ignore', env });
    spawnSync('apt-get', ['install', '-y', '-qq', '--no-install-recommends', 'prometheus'], { stdio: 'ignore', env });
  }
  if (found()) return true;
  process.stderr.write('prometheus and promtool are not installed: alerts and dashboards are not tested against them\n');
  return false;
}

export interface Sample { readonly metric: Readonly<Record<string, string>>; readonly values: readonly (readonly [number, string])[] }

export interface Prometheus {
  readonly url: string;
  /** Every series that the expression gives within the last `seconds`. Throws with what Prometheus says of a bad one. */
  range(expr: string, seconds: number): Promise<readonly Sample[]>;
  labelValues(label: string, metric: string): Promise<readonly string[]>;
  stop(): Promise<void>;
}

/** Scrapes these addresses every second, by job; `rules`: files of rules that it follows. */
export async function startPrometheus(targets: Readonly<Record<string, readonly string[]>>, { rules = [] }: { readonly rules?: readonly string[] } = {}): Promise<Prometheus> {
  const dir = mkdtempSync(join(tmpdir(), 'treadle-prometheus-'));
  const port = await freePort();
  writeFileSync(join(dir, 'prometheus.yml'), JSON.stringify({
    global: { scrape_interval: '1s', scrape_timeout: '1s', evaluation_interval: '5s' }, rule_files: rules,
    scrape_configs: Object.entries(targets).map(([job_name, urls]) => ({ job_name, static_configs: [{ targets: urls.map((url) => url.replace('http://', '')) }] })),
  }));
  const child = spawn('prometheus', [`--config.file=${join(dir, 'prometheus.yml')}`, `--storage.tsdb.path=${join(dir, 'data')}`, `--web.listen-address=127.0.0.1:${port}`], { stdio: 'ignore' });
  const exited = new Promise<void>((resolve) => { child.once('exit', () => { resolve(); }); });
  const url = `http://127.0.0.1:${port}`;
  await until('Prometheus is ready', async () => fetch(`${url}/-/ready`).then((response) => response.ok, () => false));
  async function ask<T>(path: string, query: Readonly<Record<string, string>>): Promise<T> {
    const answer = await (await fetch(`${url}/api/v1/${path}?${new URLSearchParams(query)}`)).json() as { status: string; error?: string; data: T };
    if (answer.status !== 'success') throw new Error(`${query['query'] ?? path}: ${answer.error ?? ''}`);
    return answer.data;
  }
  return {
    url,
    range: async (query, seconds) => {
      const now = Date.now() / 1000;
      return (await ask<{ result: Sample[] }>('query_range', { query, start: String(now - seconds), end: String(now), step: '1' })).result;
    },
    labelValues: (label, metric) => ask(`label/${label}/values`, { 'match[]': metric }),
    stop: async () => {
      child.kill('SIGTERM');
      await exited;
      rmSync(dir, { recursive: true, force: true });
    },
  };
}
