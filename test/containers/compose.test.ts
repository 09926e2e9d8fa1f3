/** docker-compose.yml as text: what can be said of it without an engine. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { checkConfig, environmentTable } from '@treadle/config';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import config from '../../deploy/docker/config/treadle.config.ts';
import { composeFile, services } from './compose-file.ts';
import { hasCompose, root, tryDocker } from './engine.ts';

const read = (path: string): string => readFileSync(join(root, path), 'utf8');
const yaml = <T>(path: string): T => parse(read(path), { merge: true }) as T;
const all = (text: string, form: RegExp): string[] => [...new Set([...text.matchAll(form)].map((match) => match[1]!))];

const ours = Object.entries(services).filter(([, { image }]) => image.startsWith('treadle:'));
const required = all(composeFile, /\$\{([A-Z0-9_]+):\?/g);

test('no port is open to other machines', () => {
  const ports = Object.values(services).flatMap((service) => service.ports ?? []);
  expect(ports.length).toBeGreaterThan(0);
  for (const port of ports) expect(port).toMatch(/^127\.0\.0\.1:/);
});

test('every process of Treadle has a read-only root and no capabilities', () => {
  expect(ours.map(([name]) => name).sort()).toEqual(['api', 'bucket', 'cli', 'worker']);
  for (const [name, service] of ours) expect(service, name).toMatchObject({ read_only: true, cap_drop: ['ALL'], tmpfs: ['/tmp'], security_opt: ['no-new-privileges:true'] });
});

test('Redis keeps what it acknowledged, and throws nothing away', () => {
  expect(services['redis']!.command?.join(' ')).toBe('redis-server --appendonly yes --appendfsync always --maxmemory-policy noeviction');
  expect(services['redis']!.volumes).toEqual(['redis:/data']);
});

test('a worker has longer to stop than it takes to drain', () => {
  const { stop_grace_period, environment } = services['worker']!;
  expect(Number.parseInt(stop_grace_period ?? '', 10) * 1000).toBeGreaterThan(Number(environment?.['TREADLE_DRAIN_TIMEOUT_MS']) + 10_000);
});

test('who waits for a service waits until it is healthy or has done its work, and it says when it is', () => {
  for (const [name, { depends_on = {} }] of Object.entries(services)) {
    for (const [other, { condition }] of Object.entries(depends_on)) {
      expect(['service_healthy', 'service_completed_successfully'], `${name} → ${other}`).toContain(condition);
      // Our own image brings its check along.
      if (condition === 'service_healthy' && other !== 'api') expect(services[other]!.healthcheck, other).toBeDefined();
    }
  }
});

test('secrets have no default, and .env.example names exactly what must be given', () => {
  expect(required).toEqual(['S3_SECRET_ACCESS_KEY', 'TREADLE_ADMIN_KEY']);
  expect(all(read('.env.example'), /^([A-Z0-9_]+)=$/gm).sort()).toEqual(required);
  expect(all(composeFile, /\$\{([A-Z0-9_]*(?:KEY|SECRET|PASSWORD)):-/g)).toEqual([]);
  expect(read('.gitignore').split('\n')).toContain('.env');
});

test('every variable that a process of Treadle is given is one that it knows, and the page names each that may be set', () => {
  const known = Object.values(environmentTable).map(({ name }) => name);
  for (const [name, { environment = {} }] of ours) expect(Object.keys(environment).filter((each) => !known.includes(each)), name).toEqual([]);
  const page = read('docs/deploying.md');
  for (const variable of all(composeFile, /\$\{([A-Z0-9_]+):/g)) expect(page).toContain(`\`${variable}\``);
});

test('the configuration that comes with the image is accepted', () => {
  expect(checkConfig(config, {})).toMatchObject({ type: 'ok' });
});

test('Prometheus reads the same rules in containers as elsewhere, under the same names of jobs, and asks where processes listen', () => {
  interface Config { rule_files: string[]; scrape_configs: { job_name: string; dns_sd_configs?: { names: string[]; port: number }[] }[] }
  const [containers, elsewhere] = [yaml<Config>('deploy/prometheus/containers.yml'), yaml<Config>('deploy/prometheus/prometheus.yml')];
  expect(containers.rule_files).toEqual(elsewhere.rule_files);
  expect(containers.scrape_configs.map((each) => each.job_name)).toEqual(elsewhere.scrape_configs.map((each) => each.job_name));
  const asked = containers.scrape_configs.flatMap((each) => each.dns_sd_configs ?? []).map(({ names, port }) => [names, port]);
  expect(asked).toEqual([[['api'], environmentTable.port.default], [['worker'], environmentTable.metricsPort.default]]);
  expect(services['prometheus']!.volumes).toContain('./deploy/prometheus:/etc/prometheus:ro');
});

test('Grafana reads the provisioning and the dashboards of deploy, where its files say', () => {
  const { path } = yaml<{ providers: { options: { path: string } }[] }>('deploy/grafana/provisioning/dashboards/treadle.yml').providers[0]!.options;
  const { volumes = [], environment = {} } = services['grafana']!;
  expect(volumes).toEqual(expect.arrayContaining(['./deploy/grafana/provisioning:/etc/grafana/provisioning:ro', `./deploy/grafana/dashboards:${path}:ro`]));
  expect(environment['PROMETHEUS_URL']).toBe('http://prometheus:9090');
  for (const folder of all(composeFile, /- (\.\/[^:}]+):/g)) expect(existsSync(join(root, folder)), folder).toBe(true);
});

test.skipIf(!hasCompose)('compose accepts it, and says what is missing', async () => {
  const env = { TREADLE_ADMIN_KEY: 'tk_12345678', S3_SECRET_ACCESS_KEY: '12345678' };
  // Not the developer's own .env.
  const command = ['compose', '--env-file', '/dev/null', '--profile', 'cli', 'config', '--quiet'];
  expect(await tryDocker(command, env)).toMatchObject({ code: 0 });
  for (const name of required) {
    const missing = await tryDocker(command, { ...env, [name]: '' });
    expect(missing.code).not.toBe(0);
    expect(missing.stderr).toContain(`required variable ${name} is missing a value: set it in .env`);
  }
});
