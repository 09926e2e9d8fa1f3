/**
 * Finds the Redis server binary that the embedded stack and the tests start; installs the system's package where it can.
 */
import { spawnSync } from 'node:child_process';

const candidates = ['redis-server', 'valkey-server'];

/** The path of a `redis-server` or `valkey-server`; installs Debian's package as root. Throws with what to do when there is none. */
export function ensureRedisServer(): string {
  const found = findRedisServer();
  if (found !== null) return found;
  if (process.platform === 'linux' && process.getuid?.() === 0 && which('apt-get') !== null) {
    process.stderr.write('treadle: installing redis-server\n');
    // The package starts a server of its own unless a policy forbids it; we only want the binary.
    const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive', RUNLEVEL: '1' };
    spawnSync('apt-get', ['update', '-qq'], { stdio: 'ignore', env });
    spawnSync('apt-get', ['install', '-y', '-qq', '--no-install-recommends', 'redis-server'], { stdio: 'ignore', env });
    const installed = findRedisServer();
    if (installed !== null) return installed;
  }
  throw new Error('no Redis server found: install the package redis-server (or valkey), or set REDIS_URL');
}

/** The path of an installed server, null where there is none. */
export function findRedisServer(): string | null {
  for (const name of candidates) {
    const path = which(name);
    if (path !== null) return path;
  }
  return null;
}

function which(name: string): string | null {
  const found = spawnSync('sh', ['-c', `command -v ${name}`], { encoding: 'utf8' });
  return found.status === 0 ? found.stdout.trim() : null;
}
