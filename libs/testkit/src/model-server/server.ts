/**
 * A scriptable model server on a free port of 127.0.0.1. It stands in for real ones, and is stricter than any. One server speaks
 * all wires at once, with one script and one record of requests; only the paths tell them apart.
 *
 * Owns: the listening socket. States: listening → closed (`close`, which also ends every stalled reply).
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { dialects, type DialectName, type ServedModel } from './dialects/index.ts';
import { parse, playScript, type Played, type ScriptOptions } from './script.ts';

export interface ModelServerOptions extends ScriptOptions {
  /** The wires that it speaks; default all. */
  readonly dialect?: DialectName | readonly DialectName[];
  /** What it says it has. */
  readonly models?: readonly ServedModel[];
  /** Default any free one; a server that comes back takes the port it had. */
  readonly port?: number;
  /** Default 127.0.0.1; inside a container 0.0.0.0. */
  readonly host?: string;
}

export interface ModelServer extends Played {
  /** `http://127.0.0.1:port` */
  readonly url: string;
  close(): Promise<void>;
}

const defaultModels: readonly ServedModel[] = [{ name: 'scripted:latest', context_length: 32_768, capabilities: ['completion', 'tools'] }];

/** Resolves when the server listens. */
export async function startModelServer(options: ModelServerOptions = {}): Promise<ModelServer> {
  const models = options.models ?? defaultModels;
  const spoken = Object.values(dialects).filter(({ name }) => options.dialect === undefined || [options.dialect].flat().includes(name));
  const player = playScript(options);
  const server = createServer((request, response) => {
    // A test's server must not die of a client that is gone; what matters is recorded.
    response.on('error', () => undefined);
    void route(request, response).catch((error: unknown) => {
      if (!request.readableAborted) player.blame(`the server failed: ${String(error)}`);
      response.destroy();
    });
  });

  async function route(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const bytes = await readBody(request);
    const what = `${request.method} ${request.url?.split('?')[0]}`;
    const dialect = spoken.find(({ chat }) => chat === what);
    if (dialect !== undefined) return player.answer(request, response, { bytes, dialect });
    for (const { beside } of spoken) {
      const found = beside({ what, headers: request.headers, body: parse(bytes), models });
      if (found !== null) return json(response, found.status, found.body);
    }
    response.writeHead(404, { 'content-type': 'text/plain' }).end('404 page not found');
  }

  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(options.port ?? 0, options.host ?? '127.0.0.1', resolve);
  });
  const { port } = server.address() as AddressInfo;
  const { requests, parallel, violations, add, received, assertUsedUp } = player;
  return {
    url: `http://127.0.0.1:${port}`, requests, parallel, violations, add, received, assertUsedUp,
    close: () => new Promise<void>((resolve) => {
      player.close();
      server.close(() => resolve());
      server.closeAllConnections();
    }),
  };
}

async function readBody(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

function json(response: ServerResponse, code: number, body: unknown): void {
  response.writeHead(code, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}
