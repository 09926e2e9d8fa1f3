import { getEventListeners } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { brotliCompressSync, createGzip, deflateSync, gzipSync } from 'node:zlib';
import { afterEach, describe, expect, it } from 'vitest';
import { createHttpFetch } from './http-fetch.ts';
import { HttpRefusal, refusing } from './refusal.ts';

const http = createHttpFetch();
let server: Server | undefined;

async function serve(listener: RequestListener): Promise<string> {
  const own = createServer(listener);
  server = own;
  await new Promise<void>((resolve) => { own.listen(0, '127.0.0.1', resolve); });
  return `http://127.0.0.1:${(own.address() as AddressInfo).port}`;
}

afterEach(async () => {
  http.close();
  await new Promise<void>((resolve) => {
    server?.close(() => resolve());
    server?.closeAllConnections();
  });
});

describe('fetch over node:http', () => {
  it('sends method, headers and body, and gives back status, headers and body', async () => {
    const url = await serve((request, response) => {
      request.setEncoding('utf8').on('data', (body: string) => {
        response.writeHead(201, 'Made', { 'x-seen': `${request.method} ${request.headers['x-a']} ${request.headers['content-length']} ${body}`, 'set-cookie': ['a=1', 'b=2'] }).end('réponse');
      });
    });
    const response = await http.fetch(url, { method: 'POST', headers: { 'X-A': 'b' }, body: 'eins' });
    expect([response.status, response.statusText, response.ok, await response.text()]).toEqual([201, 'Made', true, 'réponse']);
    expect(response.headers.get('x-seen')).toBe('POST b 4 eins');
    expect(response.headers.getSetCookie()).toEqual(['a=1', 'b=2']);
  });

  it.each([['gzip', gzipSync], ['deflate', deflateSync], ['br', brotliCompressSync]] as const)('asks for no compression, and undoes %s all the same', async (coding, compress) => {
    const url = await serve((request, response) => {
      const body = compress(`{"error":"${'long '.repeat(5000)}${String(request.headers['accept-encoding'])}"}`);
      response.writeHead(400, { 'content-encoding': coding, 'content-length': body.length }).end(body);
    });
    const response = await http.fetch(url);
    expect([response.headers.get('content-encoding'), response.headers.get('content-length')]).toEqual([null, null]);
    expect(await response.text()).toMatch(/long identity"\}$/);
  });

  it('hands on what comes of a compressed body before its end', async () => {
    let end = (): void => undefined;
    const url = await serve((_, response) => {
      response.writeHead(200, { 'content-encoding': 'gzip' });
      const zip = createGzip();
      zip.pipe(response);
      zip.write('one ');
      zip.flush();
      end = () => zip.end('two');
    });
    const reader = (await http.fetch(url)).body!.getReader();
    expect(Buffer.from((await reader.read()).value!).toString()).toBe('one ');
    end();
    expect(Buffer.from((await reader.read()).value!).toString()).toBe('two');
    expect((await reader.read()).done).toBe(true);
  });

  it('errs where a compressed body is none, or its connection breaks', async () => {
    const url = await serve((request, response) => {
      response.writeHead(200, { 'content-encoding': 'gzip' });
      if (request.url === '/none') response.end('plain text');
      else response.write(gzipSync('text').subarray(0, 12), () => { response.destroy(); });
    });
    for (const path of ['/none', '/broken']) await expect(http.fetch(url + path).then((response) => response.text())).rejects.toThrow('terminated');
  });

  it('has no body where the status has none', async () => {
    const url = await serve((_, response) => { response.writeHead(204).end(); });
    expect((await http.fetch(url)).body).toBeNull();
  });

  it('reads no faster than its reader', async () => {
    let sent = 0;
    const url = await serve((_, response) => {
      const more = (): void => {
        while (sent < 4000 && response.write(Buffer.alloc(65_536))) sent += 1;
      };
      response.on('drain', more);
      more();
    });
    const reader = (await http.fetch(url)).body!.getReader();
    await reader.read();
    let before = -1;
    while (before !== sent) {
      before = sent;
      await new Promise((resolve) => { setTimeout(resolve, 50); });
    }
    expect(sent).toBeLessThan(4000);
    await reader.cancel();
  });

  it('fails with the signal\'s reason, before the status line and behind it, and leaves no listener', async () => {
    const url = await serve((request, response) => {
      if (request.url === '/headers') response.writeHead(200).flushHeaders();
    });
    for (const path of ['/nothing', '/headers']) {
      const controller = new AbortController();
      const pending = http.fetch(`${url}${path}`, { signal: controller.signal }).then((response) => response.text());
      server?.once('request', () => controller.abort(new Error('enough')));
      await expect(pending).rejects.toThrow('enough');
      expect(getEventListeners(controller.signal, 'abort')).toHaveLength(0);
    }
  });

  it('leaves no listener behind a response that was read, or cancelled', async () => {
    const url = await serve((_, response) => { response.end('whole'); });
    const { signal } = new AbortController();
    await (await http.fetch(url, { signal })).text();
    await (await http.fetch(url, { signal })).body?.cancel();
    expect(getEventListeners(signal, 'abort')).toHaveLength(0);
  });

  it('keeps its connection', async () => {
    const ports: unknown[] = [];
    const url = await serve((request, response) => {
      ports.push(request.socket.remotePort);
      response.end('x');
    });
    await (await http.fetch(url)).text();
    await (await http.fetch(url)).text();
    expect(new Set(ports).size).toBe(1);
  });

  it('errs like the global one when the body breaks off', async () => {
    const url = await serve((_, response) => {
      response.write('half', () => response.socket?.resetAndDestroy());
    });
    await expect(http.fetch(url).then((response) => response.text())).rejects.toMatchObject({ name: 'TypeError', message: 'terminated', cause: { code: 'ECONNRESET' } });
  });
});

describe('a refusal', () => {
  it('keeps status, headers and at most 64 KiB of the body', async () => {
    const url = await serve((_, response) => { response.writeHead(429, { 'retry-after': '7' }).end('x'.repeat(200_000)); });
    const error = await refusing(http.fetch)(url).catch((thrown: unknown) => thrown);
    if (!(error instanceof HttpRefusal)) throw new Error('it was not refused');
    expect([error.status, error.headers.get('retry-after'), error.body.length]).toEqual([429, '7', 65_536]);
  });

  it('keeps what came of a body that broke off', async () => {
    const url = await serve((_, response) => { response.writeHead(500).write('half', () => response.socket?.resetAndDestroy()); });
    await expect(refusing(http.fetch)(url)).rejects.toMatchObject({ status: 500, body: 'half' });
  });
});
