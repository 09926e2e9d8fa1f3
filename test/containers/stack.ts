/** docker-compose.yml brought up for tests: under a name of its own, at any free ports, with the scripted model in Ollama's place. */
import { randomUUID } from 'node:crypto';
import { docker, tryDocker, type Output } from './engine.ts';
import { image } from './images.ts';

export const adminKey = 'tk_compose_test_0123456789';

/** What .env would say. */
const settings = {
  TREADLE_ADMIN_KEY: adminKey, S3_SECRET_ACCESS_KEY: 'compose-test-secret', TREADLE_VERSION: image.slice(image.indexOf(':') + 1), OLLAMA_MODEL: 'scripted:latest',
  COMPOSE_PROFILES: 'ollama,cli',
  TREADLE_PORT: '0', PROMETHEUS_PORT: '0', GRAFANA_PORT: '0',
};

export interface Stack {
  compose(...args: readonly string[]): Promise<string>;
  try(...args: readonly string[]): Promise<Output>;
  /** `http://…` of a published port. */
  url(service: string, port: number): Promise<string>;
  /** The containers of a service that run. */
  containers(service: string): Promise<readonly string[]>;
  down(): Promise<void>;
}

export function createStack(): Stack {
  const project = ['compose', '--project-name', `treadle-test-${randomUUID().slice(0, 8)}`, '--file', 'docker-compose.yml', '--file', 'test/containers/model/compose.yml'];
  const compose = (...args: readonly string[]): Promise<string> => docker([...project, ...args], settings);
  return {
    compose, try: (...args) => tryDocker([...project, ...args], settings),
    url: async (service, port) => `http://${await compose('port', service, String(port))}`,
    containers: async (service) => (await compose('ps', '--quiet', service)).split('\n').filter((id) => id !== ''),
    down: async () => { await compose('down', '--volumes', '--timeout', '10'); },
  };
}
