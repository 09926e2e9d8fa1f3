import { connect, createServer, type Server, type Socket } from 'node:net';
import type { AddressInfo } from 'node:net';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test, vi } from 'vitest';
import { startTcpProxy, type TcpProxy } from './tcp-proxy.ts';

/** Answers what it is sent. */
let echo: Server;
let proxy: TcpProxy;
beforeAll(async () => {
  echo = createServer((socket) => { socket.on('error', () => undefined).pipe(socket); });
  await new Promise<void>((resolve) => { echo.listen(0, '127.0.0.1', resolve); });
});
beforeEach(async () => { proxy = await startTcpProxy({ port: (echo.address() as AddressInfo).port }); });
afterEach(async () => { await proxy.close(); });
afterAll(() => { echo.close(); });

interface Client { readonly socket: Socket; readonly heard: () => string; readonly closed: () => boolean }

async function client(): Promise<Client> {
  const socket = connect(proxy.port, '127.0.0.1');
  let heard = '';
  let closed = false;
  socket.on('data', (chunk: Buffer) => { heard += chunk.toString(); }).on('error', () => undefined).on('close', () => { closed = true; });
  await new Promise((resolve) => { socket.once('connect', resolve).once('close', resolve); });
  return { socket, heard: () => heard, closed: () => closed };
}

const moment = (): Promise<void> => new Promise((resolve) => { setTimeout(resolve, 60); });

test('bytes go through', async () => {
  const { socket, heard } = await client();
  socket.write('hello');
  await vi.waitFor(() => { expect(heard()).toBe('hello'); });
  socket.destroy();
});

test('bytes that were dropped never come, and their connection is reset afterwards', async () => {
  const { socket, heard, closed } = await client();
  proxy.drop();
  socket.write('lost');
  await moment();
  expect([heard(), closed()]).toEqual(['', false]);
  proxy.pass();
  await vi.waitFor(() => { expect(closed()).toBe(true); });
});

test('frozen bytes come afterwards', async () => {
  const { socket, heard } = await client();
  proxy.freeze();
  socket.write('late');
  await moment();
  expect(heard()).toBe('');
  proxy.pass();
  await vi.waitFor(() => { expect(heard()).toBe('late'); });
  socket.destroy();
});

test('bytes that were held back stay in front of those that come after the delay', async () => {
  const { socket, heard } = await client();
  proxy.delay(80);
  for (const letter of 'abc') {
    socket.write(letter);
    await moment();
  }
  proxy.delay(0);
  socket.write('d');
  await vi.waitFor(() => { expect(heard()).toBe('abcd'); });
  socket.destroy();
});

test('a forgotten connection is silent and open; a new one is as usual', async () => {
  const old = await client();
  old.socket.write('x');
  await vi.waitFor(() => { expect(old.heard()).toBe('x'); });
  proxy.forget();
  old.socket.write('y');
  const { socket, heard } = await client();
  socket.write('z');
  await vi.waitFor(() => { expect(heard()).toBe('z'); });
  expect([old.heard(), old.closed()]).toEqual(['x', false]);
  old.socket.destroy();
  socket.destroy();
});

test('a refused connection is reset, and so are those that were open', async () => {
  const { closed } = await client();
  proxy.refuse();
  await vi.waitFor(() => { expect(closed()).toBe(true); });
  const late = await client();
  await vi.waitFor(() => { expect(late.closed()).toBe(true); });
});
