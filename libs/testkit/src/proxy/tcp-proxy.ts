/**
 * A TCP proxy on 127.0.0.1 that breaks connections in the ways networks do.
 *
 * Owns: its listening socket and both ends of every connection through it. States: listening → closed.
 *
 * pass   bytes go through, each chunk after `delayMs`
 * drop   bytes go nowhere, connections stay open, new ones too: what a partition looks like from inside
 * freeze bytes wait, and go on with `pass`: a partition that TCP outlives, or a peer that stands still
 * refuse new connections are reset, those that are open are cut
 */
import { connect, createServer, type Socket } from 'node:net';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

export interface TcpProxy {
  readonly port: number;
  /** Milliseconds that each chunk towards the client is held back; 0 = none. */
  delay(ms: number): void;
  /** Bytes vanish in both directions until `pass`. Connections that lost bytes are reset by `pass`: a stream with a hole is no stream. */
  drop(): void;
  freeze(): void;
  refuse(): void;
  pass(): void;
  /** Connections that are open now are silent for ever, in both directions, and never reset; new ones are as usual. */
  forget(): void;
  /** Cuts all connections now; new ones are taken. */
  cut(): void;
  /** Connections of clients, now. */
  connections(): number;
  close(): Promise<void>;
}

interface Pair { readonly client: Socket; readonly server: Socket; lost: boolean; forgotten: boolean }

/** Resolves when it listens. `port`: default any free one. */
export async function startTcpProxy(target: { readonly port: number }, options: { readonly port?: number } = {}): Promise<TcpProxy> {
  let mode: 'pass' | 'drop' | 'freeze' | 'refuse' = 'pass';
  let delayMs = 0;
  const pairs = new Set<Pair>();

  const listener = createServer((client) => {
    if (mode === 'refuse') {
      client.resetAndDestroy();
      return;
    }
    const pair: Pair = { client, server: connect(target.port, '127.0.0.1'), lost: mode === 'drop', forgotten: false };
    pairs.add(pair);
    if (mode === 'freeze') pause([pair], true);
    forward(pair, client, pair.server, () => 0);
    forward(pair, pair.server, client, () => delayMs);
  });

  function forward(pair: Pair, from: Socket, to: Socket, delay: () => number): void {
    // Each waits behind the one before, also when the delay ends: TCP never reorders.
    let last = Promise.resolve();
    let waiting = 0;
    const write = (chunk: Buffer): void => { if (to.writable) to.write(chunk); };
    from.setNoDelay(true);
    from.on('data', (chunk) => {
      if (mode === 'drop') pair.lost = true;
      if (mode === 'drop' || pair.forgotten) return;
      if (delay() === 0 && waiting === 0) return write(chunk);
      waiting += 1;
      const due = sleep(delay());
      last = last.then(() => due).then(() => { waiting -= 1; write(chunk); });
    });
    from.on('error', () => undefined);
    from.on('close', () => {
      pairs.delete(pair);
      to.destroy();
    });
  }

  function pause(which: Iterable<Pair>, still: boolean): void {
    for (const { client, server } of which) {
      for (const socket of [client, server]) {
        if (still) socket.pause();
        else socket.resume();
      }
    }
  }

  const reset = (which: (pair: Pair) => boolean): void => {
    for (const pair of [...pairs].filter(which)) {
      pair.client.resetAndDestroy();
      pair.server.destroy();
    }
  };

  await new Promise<void>((resolve, reject) => {
    listener.once('error', reject);
    listener.listen(options.port ?? 0, '127.0.0.1', resolve);
  });
  return {
    port: (listener.address() as AddressInfo).port,
    delay: (ms) => { delayMs = ms; },
    drop: () => { mode = 'drop'; },
    freeze: () => { mode = 'freeze'; pause(pairs, true); },
    forget: () => { for (const pair of pairs) pair.forgotten = true; },
    refuse: () => { mode = 'refuse'; reset(() => true); },
    pass: () => {
      if (mode === 'freeze') pause(pairs, false);
      mode = 'pass';
      reset((pair) => pair.lost);
    },
    cut: () => { reset(() => true); },
    connections: () => pairs.size,
    close: () => new Promise<void>((resolve) => {
      reset(() => true);
      listener.close(() => { resolve(); });
    }),
  };
}
