/**
 * Lets a closing server end. Node waits for every connection that is not idle, and takes for busy also one on which nothing was asked
 * yet (a client that connects in advance) or half a request; once it is closing it does not look for late requests any more.
 *
 * 1. A connection without a request under way is ended when closing begins.
 * 2. A request under way is answered, or cut after `graceMs`.
 */
import type { Server, ServerResponse, IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';

/** Returns what is called when closing begins. */
export function closesConnections(server: Server, graceMs: number): () => void {
  const open = new Set<Socket>();
  const asking = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    open.add(socket);
    socket.once('close', () => { open.delete(socket); });
  });
  server.on('request', ({ socket }: IncomingMessage, response: ServerResponse) => {
    asking.add(socket);
    response.once('close', () => { asking.delete(socket); });
  });
  return () => {
    for (const socket of open) if (!asking.has(socket)) socket.destroy();
    setTimeout(() => { server.closeAllConnections(); }, graceMs).unref();
  };
}
