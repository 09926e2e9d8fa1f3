/** The container engine that the tests use, found once; where there is none, or none that has the images, they are skipped and say why. */
import { execFile, spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';

export const root = join(import.meta.dirname, '../..');

/** What the product's image is built from; without these nothing can be tested. */
const bases = ['node:24-bookworm-slim', 'debian:bookworm-slim'];

export type Engine = { readonly type: 'ready' } | { readonly type: 'missing'; readonly reason: string };

/** Pulls what is missing. Says on standard error why tests will be skipped; with `CONTAINERS_REQUIRED` they are not skipped, and this throws. */
export function findEngine(images: readonly string[]): Engine {
  const engine = look([...bases, ...images]);
  if (engine.type === 'missing' && process.env['CONTAINERS_REQUIRED'] !== undefined) throw new Error(engine.reason);
  if (engine.type === 'missing') process.stderr.write(`containers are not tested: ${engine.reason} (npm run test:containers brings an engine on Debian)\n`);
  return engine;
}

function look(images: readonly string[]): Engine {
  const version = spawnSync('docker', ['version', '--format', '{{.Server.Version}}'], { encoding: 'utf8', timeout: 20_000 });
  if (version.status !== 0) return { type: 'missing', reason: `no container engine can be reached: ${version.error?.message ?? version.stderr.trim()}` };
  for (const image of images) {
    if (spawnSync('docker', ['image', 'inspect', image], { stdio: 'ignore' }).status === 0) continue;
    const pulled = spawnSync('docker', ['pull', '--quiet', image], { encoding: 'utf8', timeout: 600_000 });
    if (pulled.status !== 0) return { type: 'missing', reason: `${image} is not there and cannot be pulled: ${pulled.stderr.trim()}` };
  }
  return { type: 'ready' };
}

/** Whether `docker compose` is there. Needs no engine. */
export const hasCompose = spawnSync('docker', ['compose', 'version'], { stdio: 'ignore' }).status === 0;

export interface Output { readonly code: number; readonly stdout: string; readonly stderr: string }

/** Runs `docker …` to its end, whatever it comes to. */
export async function tryDocker(args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Output> {
  try {
    const { stdout, stderr } = await promisify(execFile)('docker', args, { cwd: root, env: { ...process.env, ...env }, maxBuffer: 64 * 1024 * 1024 });
    return { code: 0, stdout, stderr };
  } catch (error) {
    const { code, stdout, stderr, message } = error as Error & { code?: unknown; stdout?: string; stderr?: string };
    return { code: typeof code === 'number' ? code : -1, stdout: stdout ?? '', stderr: stderr ?? message };
  }
}

/** What it printed, without the end of the line. @throws Error with all that it said, when it fails. */
export async function docker(args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<string> {
  const { code, stdout, stderr } = await tryDocker(args, env);
  if (code !== 0) throw new Error(`docker ${args.join(' ')}: ${code}\n${stdout}\n${stderr}`);
  return stdout.trimEnd();
}

export async function inspect<T>(name: string, what: string): Promise<T> {
  return JSON.parse(await docker(['inspect', '--format', `{{json ${what}}}`, name])) as T;
}
