/**
 * The system as containers: Redis, the scripted model, an API and workers of the image under test, hardened as docker-compose.yml has them
 * (read-only root, no capabilities), with one archive folder on this machine.
 */
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createClient, type Client } from '@treadle/client';
import { GenericContainer, Network, Wait, type StartedNetwork, type StartedTestContainer } from 'testcontainers';
import { docker } from './engine.ts';
import { image, modelImage } from './images.ts';
import { imageOf } from './compose-file.ts';

const key = 'tk_containers_test_0123456789';

/** A tool that may happen once, and writes down that it does where the test can read it. */
const config = `
import { defineConfig, defineTool } from '@treadle/config';
import { appendFileSync } from 'node:fs';
export default defineConfig({
  models: { small: { provider: 'ollama', model: 'scripted:latest', base_url: 'http://model:11434', context_window: 32768, max_output_tokens: 1024 } },
  chains: { default: { models: ['small'] } },
  functions: [defineTool({
    name: 'row', description: 'Writes a row.', input: { type: 'object', properties: { n: { type: 'number' } } },
    run: ({ n }, { run_id, tool_use_id }) => { appendFileSync('/shared/rows.txt', run_id + ' ' + tool_use_id + ' ' + n + '\\n'); return 'written'; },
  })],
  agents: { tester: { instructions: 'Test.', chain: 'default', tools: ['row'] } },
});
`;

class Hardened extends GenericContainer {
  constructor() {
    super(image);
    this.hostConfig.ReadonlyRootfs = true;
    this.withTmpFs({ '/tmp': 'rw' }).withDroppedCapabilities('ALL').withSecurityOpt('no-new-privileges');
  }
}

export interface Stage {
  readonly client: Client;
  readonly api: StartedTestContainer;
  readonly workers: readonly StartedTestContainer[];
  /** A folder that every container of the product sees as /shared. */
  readonly shared: string;
  /** The worker that calls itself so in events: its host name is the beginning of its container's id. */
  workerNamed(name: string): StartedTestContainer;
  stop(): Promise<void>;
}

/** Takes away what it has begun when it fails. */
export async function startStage(): Promise<Stage> {
  const shared = mkdtempSync(join(tmpdir(), 'treadle-containers-'));
  const network = await new Network().start();
  const begun: Begun = { shared, network, label: `treadle-test=${network.getName()}` };
  return start(begun).catch(async (error: unknown) => {
    await stop(begun);
    throw error;
  });
}

interface Begun {
  readonly shared: string;
  readonly network: StartedNetwork;
  /** Of every container, as NAME=VALUE: some are killed or stopped by the tests, and are found by it all the same. */
  readonly label: string;
}

async function start(begun: Begun): Promise<Stage> {
  const { shared, network, label } = begun;
  const folders = { config: join(shared, 'config'), data: join(shared, 'data') };
  for (const folder of Object.values(folders)) mkdirSync(folder);
  writeFileSync(join(folders.config, 'treadle.config.ts'), config);
  // The containers' user is not ours.
  chmodSync(shared, 0o755);
  chmodSync(folders.data, 0o777);
  const inNetwork = (container: GenericContainer, ...aliases: string[]): GenericContainer => container.withNetwork(network).withNetworkAliases(...aliases).withLabels(Object.fromEntries([label.split('=')]) as Record<string, string>);
  await Promise.all([
    inNetwork(new GenericContainer(imageOf('redis')), 'redis').withCommand(['redis-server', '--appendonly', 'yes', '--appendfsync', 'always']).withWaitStrategy(Wait.forLogMessage(/Ready to accept connections/)).start(),
    inNetwork(new GenericContainer(modelImage), 'model').withHealthCheck({ test: ['CMD', 'ollama', 'list'], interval: 1000, timeout: 5000, retries: 20, startPeriod: 0 }).withWaitStrategy(Wait.forHealthCheck()).start(),
  ]);
  const product = (): GenericContainer => inNetwork(new Hardened())
    .withBindMounts([{ source: folders.config, target: '/etc/treadle', mode: 'ro' }, { source: folders.data, target: '/shared', mode: 'rw' }])
    .withEnvironment({ REDIS_URL: 'redis://redis:6379', ARCHIVE_DIR: '/shared/archive', TREADLE_ADMIN_KEY: key, TREADLE_API_KEY: key, TREADLE_LEASE_MS: '2000' })
    .withWaitStrategy(Wait.forHealthCheck()).withStartupTimeout(120_000);
  const [api, ...workers] = await Promise.all([product().withExposedPorts(8080).start(), ...[1, 2].map(() => product().withCommand(['worker']).start())]);
  return {
    client: createClient({ url: `http://${api!.getHost()}:${api!.getMappedPort(8080)}`, apiKey: key, reconnectMs: 50 }), api: api!, workers, shared: folders.data,
    workerNamed: (name) => {
      const found = workers.find((worker) => name.startsWith(worker.getId().slice(0, 12)));
      if (found === undefined) throw new Error(`no worker is called ${name}`);
      return found;
    },
    stop: () => stop(begun),
  };
}

async function stop({ shared, network, label }: Begun): Promise<void> {
  const ids = (await docker(['ps', '--all', '--quiet', '--filter', `label=${label}`])).split('\n').filter((id) => id !== '');
  if (ids.length > 0) await docker(['rm', '--force', '--volumes', ...ids]);
  await network.stop();
  rmSync(shared, { recursive: true, force: true });
}
