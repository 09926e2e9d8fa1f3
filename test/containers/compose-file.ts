/** docker-compose.yml, read. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { root } from './engine.ts';

export interface Service {
  readonly image: string;
  readonly command?: readonly string[];
  readonly ports?: readonly string[];
  readonly volumes?: readonly string[];
  readonly environment?: Readonly<Record<string, string | number>>;
  readonly healthcheck?: Readonly<Record<string, unknown>>;
  readonly depends_on?: Readonly<Record<string, { readonly condition: string }>>;
  readonly read_only?: boolean;
  readonly cap_drop?: readonly string[];
  readonly stop_grace_period?: string;
}

export const composeFile = readFileSync(join(root, 'docker-compose.yml'), 'utf8');
export const services = (parse(composeFile, { merge: true }) as { services: Readonly<Record<string, Service>> }).services;

/** The image that a service runs: the tests use the same. */
export function imageOf(service: string): string {
  const found = services[service];
  if (found === undefined) throw new Error(`docker-compose.yml has no service ${service}`);
  return found.image;
}
