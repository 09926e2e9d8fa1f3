/** A site on this machine: what a tool's server, a page or somebody's inside is elsewhere. It remembers every request. */
import http from 'node:http';
import type { AddressInfo } from 'node:net';

export interface SiteRequest { readonly method: string; readonly url: string; readonly headers: http.IncomingHttpHeaders; readonly body: string }
export interface SiteAnswer { readonly status?: number; readonly headers?: Readonly<Record<string, string>>; readonly body?: string | Uint8Array }

export interface Site {
  readonly port: number;
  readonly origin: string;
  readonly seen: readonly SiteRequest[];
  /** Requests that are not answered, and whose connection still stands. */
  readonly open: () => number;
  stop(): Promise<void>;
}

/** An answer of null is none: the connection stays as it is. */
export async function startSite(answer: (request: SiteRequest) => SiteAnswer | null): Promise<Site> {
  const seen: SiteRequest[] = [];
  const waiting = new Set<http.ServerResponse>();
  const server = http.createServer((incoming, response) => {
    let body = '';
    incoming.setEncoding('utf8').on('data', (text: string) => { body += text; }).on('end', () => {
      const request = { method: incoming.method!, url: incoming.url!, headers: incoming.headers, body };
      seen.push(request);
      const given = answer(request);
      if (given === null) {
        waiting.add(response);
        response.on('close', () => { waiting.delete(response); });
        return;
      }
      const { status = 200, headers = {}, body: answered = '' } = given;
      response.writeHead(status, headers).end(answered);
    });
  });
  await new Promise<void>((resolve) => { server.listen(0, '127.0.0.1', resolve); });
  const { port } = server.address() as AddressInfo;
  return {
    port, origin: `http://127.0.0.1:${port}`, seen, open: () => waiting.size,
    stop: () => new Promise((resolve) => {
      server.closeAllConnections();
      server.close(() => { resolve(); });
    }),
  };
}
