/**
 * Ceph's S3 gateway on 127.0.0.1: a store that others wrote and many run, with real signatures and real conditions. Memory only.
 *
 * Owns: three processes (monitor, object store, gateway) and a folder. They need the system's packages radosgw, ceph-mon and ceph-osd;
 * nothing is installed here.
 */
import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { accessSync, constants, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import { freePort } from '../free-port.ts';

export interface CephServer {
  readonly endpoint: string;
  readonly credentials: { readonly accessKeyId: string; readonly secretAccessKey: string };
  stop(): Promise<void>;
}

const run = promisify(execFile);
const programs = ['radosgw', 'radosgw-admin', 'ceph', 'ceph-mon', 'ceph-osd', 'monmaptool'];
const credentials = { accessKeyId: 'TESTACCESSKEY', secretAccessKey: 'test-secret-key' };

export function isCephInstalled(): boolean {
  const folders = (process.env['PATH'] ?? '').split(delimiter);
  return programs.every((program) => folders.some((folder) => {
    try {
      accessSync(join(folder, program), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  }));
}

/** Throws where one of its parts does not come up. There is no bucket yet. */
export async function startCeph(): Promise<CephServer> {
  const dir = mkdtempSync(join(tmpdir(), 'treadle-ceph-'));
  const started: ChildProcess[] = [];
  const config = join(dir, 'ceph.conf');
  const daemon = (program: string, ...args: string[]): ChildProcess => {
    const child = spawn(program, ['-c', config, ...args, '-f'], { stdio: 'ignore' });
    started.push(child);
    return child;
  };
  const stop = async (): Promise<void> => {
    for (const child of started.reverse()) await ended(child);
    rmSync(dir, { recursive: true, force: true });
  };
  try {
    const fsid = randomUUID();
    const [port, monitor, first] = [await freePort(), await freePort(), await freePort()];
    for (const part of ['mon', 'osd', 'rgw', 'run']) mkdirSync(join(dir, part));
    writeFileSync(config, configuration({ dir, fsid, port, monitor, first }));
    const ask = (program: string, ...args: string[]) => run(program, ['-c', config, ...args], { timeout: 60_000 });
    await run('monmaptool', ['--create', '--addv', 'a', `[v2:127.0.0.1:${monitor}]`, '--fsid', fsid, join(dir, 'monmap')]);
    await ask('ceph-mon', '--mkfs', '-i', 'a', '--monmap', join(dir, 'monmap'));
    daemon('ceph-mon', '-i', 'a');
    const osd = randomUUID();
    await ask('ceph', '--connect-timeout', '50', 'osd', 'new', osd);
    await ask('ceph-osd', '-i', '0', '--mkfs', '--osd-uuid', osd);
    await ask('ceph', 'osd', 'crush', 'add', 'osd.0', '1', 'root=default', 'host=h');
    daemon('ceph-osd', '-i', '0');
    await ask('radosgw-admin', '-n', 'client.admin', 'user', 'create', '--uid=t', '--display-name=t', `--access-key=${credentials.accessKeyId}`, `--secret-key=${credentials.secretAccessKey}`);
    daemon('radosgw', '-n', 'client.admin');
    const endpoint = `http://127.0.0.1:${port}`;
    await answers(endpoint);
    return { endpoint, credentials, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = new Promise<void>((resolve) => { child.once('exit', () => { resolve(); }); });
  child.kill('SIGTERM');
  const bound = setTimeout(() => { child.kill('SIGKILL'); }, 10_000);
  await exited;
  clearTimeout(bound);
}

async function answers(url: string): Promise<void> {
  for (let left = 300; ; left--) {
    const found = await fetch(url).catch(() => null);
    await found?.arrayBuffer();
    if (found !== null) return;
    if (left === 0) throw new Error('the gateway of Ceph does not answer');
    await new Promise((resolve) => { setTimeout(resolve, 200); });
  }
}

interface Place { readonly dir: string; readonly fsid: string; readonly port: number; readonly monitor: number; readonly first: number }

/** Without authentication between its parts, which would need keys on disk; the gateway itself checks every signature. */
function configuration({ dir, fsid, port, monitor, first }: Place): string {
  const global: Record<string, string | number> = {
    fsid, mon_initial_members: 'a', mon_host: `[v2:127.0.0.1:${monitor}]`, public_addr: '127.0.0.1', cluster_addr: '127.0.0.1', auth_supported: 'none',
    ms_mon_client_mode: 'crc', ms_client_mode: 'crc', ms_cluster_mode: 'crc', ms_service_mode: 'crc',
    auth_cluster_required: 'none', auth_service_required: 'none', auth_client_required: 'none',
    osd_pool_default_size: 1, osd_pool_default_min_size: 1, osd_pool_default_pg_num: 4, osd_pool_default_pgp_num: 4, osd_crush_chooseleaf_type: 0,
    mon_allow_pool_size_one: 'true', run_dir: `${dir}/run`, admin_socket: `${dir}/run/$name.asok`, log_file: `${dir}/run/$name.log`, pid_file: `${dir}/run/$name.pid`,
    mon_data: `${dir}/mon`, osd_data: `${dir}/osd`, osd_objectstore: 'memstore', memstore_device_bytes: 1 << 30, ms_bind_port_min: first, ms_bind_port_max: first + 60,
  };
  const lines = Object.entries(global).map(([name, value]) => `${name} = ${value}`);
  return `[global]\n${lines.join('\n')}\n[client]\nrgw_frontends = beast endpoint=127.0.0.1:${port}\nrgw_data = ${dir}/rgw\n`;
}
