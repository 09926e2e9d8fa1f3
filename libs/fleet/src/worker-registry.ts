/** Who works, in Redis (the port `WorkerRegistry`): one hash, one script; a beat sent twice is one. Holds nothing in memory. */
import type { SeenWorker, WorkerRegistry, WorkerReport } from '@treadle/engine';
import { fleetKeys } from './keys.ts';
import { createScriptRunner, unknownReply, type RedisClient } from './script-runner.ts';

export interface WorkerRegistryOptions {
  /** As the run store's. */
  readonly prefix: string;
  /** After which a silent worker is no longer told of. Default 60,000. */
  readonly forgetMs?: number;
  /** After which a call is given up. Default 2,000. */
  readonly callTimeoutMs?: number;
}

export function createWorkerRegistry(redis: RedisClient, { prefix, forgetMs = 60_000, callTimeoutMs = 2000 }: WorkerRegistryOptions): WorkerRegistry {
  const run = createScriptRunner(redis, ['workers'], { callTimeoutMs });
  async function ask(name: string, said: string): Promise<readonly SeenWorker[]> {
    const reply = await run('workers', { keys: [fleetKeys(prefix).workers], args: [forgetMs, name, said] });
    if (reply[0] !== 'workers') throw unknownReply('workers', reply);
    return (reply.slice(1) as string[]).map(seenWorker).sort((a, b) => (a.name < b.name ? -1 : 1));
  }
  return {
    beat: (report) => ask(report.name, JSON.stringify(report)),
    leave: async (name) => { await ask(name, ''); },
    list: () => ask('', ''),
  };
}

/** `<ms> <JSON>` */
function seenWorker(text: string): SeenWorker {
  const at = text.indexOf(' ');
  return { ...(JSON.parse(text.slice(at + 1)) as WorkerReport), last_seen_ms: Number(text.slice(0, at)) };
}
