import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { createSocket } from 'node:dgram';
import { getEventListeners } from 'node:events';
import http, { type IncomingMessage, type RequestListener } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import { createEgress, NotSent } from './egress.ts';
import { resolvedByNameServers, resolvedBySystem } from './resolve.ts';

const servers: http.Server[] = [];
afterEach(async () => {
  await Promise.all(servers.splice(0).map((server) => new Promise((done) => { server.closeAllConnections(); server.close(done); })));
});

interface Canary { readonly port: number; readonly seen: IncomingMessage[] }

async function serve(answer: RequestListener = (_, response) => { response.end('inside'); }, host = '127.0.0.1'): Promise<Canary> {
  const seen: IncomingMessage[] = [];
  const server = http.createServer((request, response) => { seen.push(request); answer(request, response); });
  servers.push(server);
  await new Promise<void>((done) => { server.listen(0, host, done); });
  return { port: (server.address() as AddressInfo).port, seen };
}

const v4 = (address: string) => ({ address, family: 4 });
const failure = async (answer: Promise<unknown>): Promise<Error> => answer.then(() => new Error('it was let through'), (error: Error) => error);

describe('literal addresses', () => {
  test.each([
    '127.0.0.1', '[::1]', '[::ffff:127.0.0.1]', '[::ffff:7f00:1]', '2130706433', '0x7f000001', '0x7f.1', '0177.0.0.1', '017700000001', '127.1', '127.0.1', '0', '0.0.0.0', '[::]',
    '169.254.169.254', '[fd00:ec2::254]', '10.1.2.3', '192.168.0.1', '172.16.0.1', '100.64.0.1', '224.0.0.1', '[64:ff9b::7f00:1]', '①②⑦.0.0.1', '127。0。0。1', '%31%32%37.0.0.1',
  ])('http://%s is refused before anything is sent', async (host) => {
    const canary = await serve();
    const error = await failure(createEgress({ allow: [] })(`http://${host}:${canary.port}/`));
    expect(error).toBeInstanceOf(NotSent);
    expect(error.message).toMatch(/is not a public address/);
    expect(canary.seen).toEqual([]);
  });

  test.each(['ftp://example.org/x', 'file:///etc/passwd', 'data:text/plain,x', 'http://user@127.0.0.1/', 'http://user:pw@example.org/', 'http://', 'no url', 'http://127.0.0.1:99999/'])('%s is refused', async (url) => {
    expect(await failure(createEgress({ allow: [] })(url))).toBeInstanceOf(NotSent);
  });
});

describe('names', () => {
  test.each(['localhost', 'localhost.', 'LOCALHOST'])('%s is refused', async (host) => {
    const canary = await serve();
    const { message } = await failure(createEgress({ allow: [] })(`http://${host}:${canary.port}/`));
    // Not every system knows the name with the dot.
    expect(message).toMatch(host.endsWith('.') ? /is not a public address|ENOTFOUND|EAI_AGAIN/ : /is not a public address \(loopback\)/);
    expect(canary.seen).toEqual([]);
  });

  test('one inner address among public ones is enough to refuse', async () => {
    const canary = await serve();
    const go = createEgress({ allow: [], resolve: async () => [v4('93.184.216.34'), v4('127.0.0.1')] });
    expect(await failure(go(`http://mixed.example:${canary.port}/`))).toBeInstanceOf(NotSent);
    expect(canary.seen).toEqual([]);
  });

  test('a name is resolved once, and the connection goes to what was checked: an answer that changes does not matter', async () => {
    const canary = await serve();
    let asked = 0;
    // Public at first, and inside for whoever asks again.
    const go = createEgress({ allow: [], resolve: async () => { asked += 1; return [v4(asked === 1 ? '8.8.8.8' : '127.0.0.1')]; } });
    const connectedTo: string[] = [];
    const onSocket = (message: unknown): void => {
      const { socket } = message as { socket: Socket };
      // Ended before its connection is begun: no test reaches the internet.
      socket.on('lookup', (error: Error | null, address) => {
        if (error !== null && error !== undefined) return;
        connectedTo.push(address);
        socket.destroy(new Error('no further'));
      });
    };
    subscribe('net.client.socket', onSocket);
    try {
      expect((await failure(go(`http://rebinding.example:${canary.port}/`))).message).toBe('no connection: no further');
      expect([asked, connectedTo, canary.seen]).toEqual([1, ['8.8.8.8'], []]);
      expect((await failure(go(`http://rebinding.example:${canary.port}/`))).message).toMatch(/is not a public address/);
      expect([asked, connectedTo, canary.seen]).toEqual([2, ['8.8.8.8'], []]);
    } finally {
      unsubscribe('net.client.socket', onSocket);
    }
  });

  test('the address that was checked is the one that is connected to, with the name in the Host header', async () => {
    const canary = await serve();
    let asked = 0;
    const go = createEgress({ allow: [`http://pinned.example:${canary.port}`], resolve: async () => { asked += 1; return [v4('127.0.0.1')]; } });
    expect(await (await go(`http://pinned.example:${canary.port}/x`)).text()).toBe('inside');
    expect([asked, canary.seen[0]!.headers.host]).toEqual([1, `pinned.example:${canary.port}`]);
  });

  test('a name without an address, or that nobody knows, is not sent to', async () => {
    expect((await failure(createEgress({ allow: [], resolve: async () => [] })('http://empty.example/'))).message).toBe('empty.example has no address');
    const error = await failure(createEgress({ allow: [], resolve: async () => { throw Object.assign(new Error('getaddrinfo ENOTFOUND nowhere.example'), { code: 'ENOTFOUND' }); } })('http://nowhere.example/'));
    expect(error).toBeInstanceOf(NotSent);
    expect(error.message).toMatch(/ENOTFOUND/);
  });
});

describe('name servers', () => {
  async function nameServer(answer: (query: Buffer) => Buffer | null): Promise<{ address: string; asked: () => number; close: () => void }> {
    let asked = 0;
    const socket = createSocket('udp4').on('message', (query, from) => {
      asked++;
      const reply = answer(query);
      if (reply !== null) socket.send(reply, from.port);
    });
    await new Promise<void>((done) => { socket.bind(0, '127.0.0.1', done); });
    return { address: `127.0.0.1:${socket.address().port}`, asked: () => asked, close: () => { socket.close(); } };
  }
  /** The question sent back, as an answer with `records` behind it. */
  const replied = (query: Buffer, code: number, records: readonly Buffer[] = []): Buffer => {
    const question = query.subarray(12, query.indexOf(0, 12) + 5);
    return Buffer.concat([query.subarray(0, 2), Buffer.from([0x81, 0x80 | code, 0, 1, 0, records.length, 0, 0, 0, 0]), question, ...records]);
  };
  const typeOf = (query: Buffer): number => query.readUInt16BE(query.indexOf(0, 12) + 1);

  test('that never answer hold up no other name, and are not waited for long', async () => {
    const silent = await nameServer(() => null);
    const all = Promise.allSettled(Array.from({ length: 40 }, (_, n) => resolvedByNameServers(`n${n}.example`, { servers: [silent.address], timeoutMs: 250 })));
    // The system's resolver has two threads, and these are not in them.
    expect(await resolvedBySystem('localhost')).not.toEqual([]);
    let over = false;
    void all.then(() => { over = true; });
    await new Promise((done) => { setTimeout(done, 50); });
    expect([over, silent.asked() >= 80]).toEqual([false, true]);
    expect(new Set((await all).map(({ status }) => status))).toEqual(new Set(['rejected']));
    silent.close();
  });

  test('give the addresses of both families, none, or the reason', async () => {
    const a = Buffer.from([0xc0, 0x0c, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 127, 0, 0, 7]);
    const known = await nameServer((query) => replied(query, 0, typeOf(query) === 1 ? [a] : []));
    expect(await resolvedByNameServers('x.example', { servers: [known.address] })).toEqual([{ address: '127.0.0.7', family: 4 }]);
    const empty = await nameServer((query) => replied(query, 0));
    expect(await resolvedByNameServers('x.example', { servers: [empty.address] })).toEqual([]);
    const unknown = await nameServer((query) => replied(query, 3));
    expect((await failure(resolvedByNameServers('x.example', { servers: [unknown.address] }))).message).toMatch(/^the name x\.example was not found \(ENOTFOUND\)/);
    expect(await resolvedByNameServers('a.localhost.')).toEqual([{ address: '127.0.0.1', family: 4 }]);
    for (const each of [known, empty, unknown]) each.close();
  });
});

describe('what the list allows', () => {
  test('is an origin: scheme, host and port', async () => {
    const [canary, other] = [await serve(), await serve()];
    const go = createEgress({ allow: [`http://127.0.0.1:${canary.port}`] });
    expect(await (await go(`http://127.0.0.1:${canary.port}/a?b=c`)).text()).toBe('inside');
    for (const url of [`http://127.0.0.1:${other.port}/`, `https://127.0.0.1:${canary.port}/`, `http://localhost:${canary.port}/`]) expect(await failure(go(url)), url).toBeInstanceOf(NotSent);
    expect(other.seen).toEqual([]);
  });

  test('reaches an IPv6 server, too', async () => {
    const canary = await serve(undefined, '::1');
    expect(await (await createEgress({ allow: [`http://[::1]:${canary.port}`] })(`http://[::1]:${canary.port}/`)).text()).toBe('inside');
  });

  test('a redirect is not followed, wherever it leads', async () => {
    const canary = await serve();
    const way = await serve((_, response) => { response.writeHead(302, { location: `http://127.0.0.1:${canary.port}/` }).end(); });
    const response = await createEgress({ allow: [`http://127.0.0.1:${way.port}`] })(`http://127.0.0.1:${way.port}/`);
    expect([response.status, response.headers.get('location'), canary.seen]).toEqual([302, `http://127.0.0.1:${canary.port}/`, []]);
  });
});

describe('a request', () => {
  const to = (canary: Canary) => createEgress({ allow: [`http://127.0.0.1:${canary.port}`] });
  const at = (canary: Canary) => `http://127.0.0.1:${canary.port}/`;

  test('brings method, headers and body, each on a connection of its own', async () => {
    const bodies: string[] = [];
    const ports: (number | undefined)[] = [];
    const canary = await serve((request, response) => {
      let body = '';
      ports.push(request.socket.remotePort);
      request.setEncoding('utf8').on('data', (text: string) => { body += text; }).on('end', () => { bodies.push(body); response.writeHead(201, { 'x-a': ['1', '2'] }).end('made'); });
    });
    for (let time = 0; time < 2; time++) {
      const response = await to(canary)(at(canary), { method: 'POST', headers: { 'x-own': 'e' }, body: 'grüße' });
      expect([response.status, await response.text(), response.headers.get('x-a')]).toEqual([201, 'made', '1, 2']);
    }
    expect(bodies).toEqual(['grüße', 'grüße']);
    expect(new Set(ports).size).toBe(2);
    expect(canary.seen[0]).toMatchObject({ method: 'POST', headers: { 'x-own': 'e', 'content-length': '7' } });
  });

  test('that nobody takes was not sent; one that broke off was', async () => {
    const gone = await serve();
    const port = gone.port;
    await new Promise((done) => { servers.pop()!.close(done); });
    const refused = await failure(createEgress({ allow: [`http://127.0.0.1:${port}`] })(`http://127.0.0.1:${port}/`));
    expect(refused).toMatchObject({ sent: false, message: expect.stringContaining('ECONNREFUSED') as string });
    const breaking = await serve((request) => { request.socket.destroy(); });
    const broken = await failure(to(breaking)(at(breaking)));
    expect(broken).toBeInstanceOf(TypeError);
    expect(broken).not.toBeInstanceOf(NotSent);
    expect(breaking.seen).toHaveLength(1);
  });

  test('that is aborted ends at once, before the answer and in the middle of it, and leaves no listener', async () => {
    const silent = await serve(() => undefined);
    const abort = new AbortController();
    const waiting = to(silent)(at(silent), { signal: abort.signal });
    setTimeout(() => abort.abort(new Error('enough')), 20);
    expect((await failure(waiting)).message).toBe('enough');
    const half = await serve((_, response) => { response.writeHead(200); response.write('half'); });
    const second = new AbortController();
    const response = await to(half)(at(half), { signal: second.signal });
    setTimeout(() => second.abort(new Error('enough')), 20);
    expect((await failure(response.text())).message).toBe('enough');
    expect([getEventListeners(abort.signal, 'abort'), getEventListeners(second.signal, 'abort')]).toEqual([[], []]);
  });

  test.each([['101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x', /without an answer/], ['101 Switching Protocols', /101 is no status/], ['999 Odd', /999 is no status/], ['000 None', /0 is no status/]])('that is answered %j is an error at once', async (head, said) => {
    const canary = await serve((request) => { request.socket.write(`HTTP/1.1 ${head}\r\n\r\n`); });
    const abort = new AbortController();
    expect((await failure(to(canary)(at(canary), { signal: abort.signal }))).message).toMatch(said);
    expect(getEventListeners(abort.signal, 'abort')).toEqual([]);
  });

  test('whose answer is shorter than it said is an error, not a short answer', async () => {
    const canary = await serve((_, response) => { response.writeHead(200, { 'content-length': '100' }); response.write('short'); response.socket?.end(); });
    const response = await to(canary)(at(canary));
    expect((await failure(response.text())).message).toMatch(/broke off/);
  });
});
