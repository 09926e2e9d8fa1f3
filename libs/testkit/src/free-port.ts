import { createServer } from 'node:net';

/** The system gives these to nobody by itself, neither for a connection nor to who listens on any port (Linux: from 32,768 on). */
const first = 20_000;
const last = 32_767;

/**
 * A port of 127.0.0.1 on which nobody listens, for a server that is started, or put back, a moment later: nobody else comes by it in between
 * but who asks here, too. At most 32,767, so that the nodes of a Redis Cluster find one 10,000 above. Throws where none is found.
 */
export async function freePort(): Promise<number> {
  for (let tries = 0; tries < 1000; tries++) {
    const port = first + Math.floor(Math.random() * (last - first + 1));
    if (await isFree(port)) return port;
  }
  throw new Error(`no port from ${first} to ${last} is free`);
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => { resolve(false); });
    server.listen(port, '127.0.0.1', () => { server.close(() => { resolve(true); }); });
  });
}
