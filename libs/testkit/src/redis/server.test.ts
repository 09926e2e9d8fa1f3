import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { startRedis } from './index.ts';

/** One inline command, its raw answer; rejects where nobody listens. */
function ask(port: number, command: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () => { socket.write(`${command}\r\n`); });
    socket.once('data', (data) => { socket.destroy(); resolve(data.toString()); });
    socket.once('error', reject);
  });
}

test('what was written survives a kill, under the same URL', async () => {
  const server = await startRedis();
  await ask(server.port, 'SET k v');
  const { pid, url } = server;
  await server.kill();
  await expect(ask(server.port, 'PING')).rejects.toThrow();
  await server.restart();
  expect(await ask(server.port, 'GET k')).toBe('$1\r\nv\r\n');
  expect(server.url).toBe(url);
  expect(server.pid).not.toBe(pid);
  await server.stop();
  await expect(ask(server.port, 'PING')).rejects.toThrow();
});

test('somebody else on its port is not taken for it, whatever he answers', async () => {
  const server = await startRedis();
  await server.kill();
  const other = createServer((socket) => { socket.on('error', () => undefined).once('data', () => { socket.end('+PONG\r\n'); }); });
  await once(other.listen(server.port, '127.0.0.1'), 'listening');
  await expect(server.restart()).rejects.toThrow(`did not become ready on port ${server.port}`);
  await new Promise((resolve) => { other.close(resolve); });
  await server.restart();
  expect(await ask(server.port, 'PING')).toContain('PONG');
  await server.stop();
});

test('persists as it is told to', async () => {
  const server = await startRedis({ appendonly: 'no', appendfsync: 'everysec' });
  expect(await ask(server.port, 'CONFIG GET append*sync')).toContain('everysec');
  expect(await ask(server.port, 'CONFIG GET appendonly')).toContain('no');
  await server.stop();
});

test('ends with the process that started it, even where that is killed', async () => {
  const script = `const { startRedis } = await import(${JSON.stringify(join(import.meta.dirname, 'index.ts'))}); process.stdout.write(String((await startRedis({ appendonly: 'no' })).port));`;
  const starter = spawn(process.execPath, ['--input-type=module', '-e', script], { stdio: ['ignore', 'pipe', 'inherit'] });
  const [line] = await once(starter.stdout, 'data') as [Buffer];
  const port = Number(line.toString());
  expect(await ask(port, 'PING')).toContain('PONG');
  starter.kill('SIGKILL');
  await vi.waitFor(async () => { await expect(ask(port, 'PING')).rejects.toThrow(); }, 5000);
});
