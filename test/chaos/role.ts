/**
 * One process of the product, `api` or `worker`, that dies at the points the folder `CHAOS_DIR` arms, and whose clock is off by
 * `CLOCK_SHIFT_MS`: `node role.ts worker`. On SIGUSR2 it collects its garbage and says what is left, as a line of JSON.
 */
import { join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { apiCommand, workerCommand } from '@treadle/cli';
import { crashingDirectory, crashingPorts, openArmed } from '@treadle/testkit';

const dir = process.env.CHAOS_DIR;
if (dir === undefined) throw new Error('CHAOS_DIR names no folder');
shiftClock(Number(process.env.CLOCK_SHIFT_MS ?? 0));
const armed = openArmed(dir);
tellOfMemory();
try {
  process.exitCode = process.argv[2] === 'api'
    ? await apiCommand([], (store) => crashingDirectory(store, armed))
    : await workerCommand([], (ports) => crashingPorts(ports, armed, join(dir, 'ledger.jsonl')));
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = (error as { exitCode?: number }).exitCode ?? 1;
}
process.exit();

function tellOfMemory(): void {
  process.on('SIGUSR2', () => {
    setFlagsFromString('--expose-gc');
    const collect = runInNewContext('gc') as (options?: { readonly type: 'major'; readonly flavor: 'last-resort' }) => void;
    collect();
    collect();
    const { heapUsed: heap, rss } = process.memoryUsage();
    collect({ type: 'major', flavor: 'last-resort' });
    const kinds: Record<string, number> = {};
    for (const kind of process.getActiveResourcesInfo()) kinds[kind] = (kinds[kind] ?? 0) + 1;
    const left = { heap, rss, least_rss: process.memoryUsage.rss(), resources: process.getActiveResourcesInfo().length, kinds };
    process.stdout.write(`memory ${JSON.stringify(left)}\n`);
  });
}

/** Everything in this process that asks what time it is hears another one; what measures durations is not touched, as on a real machine. */
function shiftClock(ms: number): void {
  if (ms === 0) return;
  const RealDate = Date;
  globalThis.Date = class extends RealDate {
    constructor(...args: [] | [number | string | Date]) {
      if (args.length === 0) super(RealDate.now() + ms);
      else super(args[0]);
    }

    static override now(): number {
      return RealDate.now() + ms;
    }
  } as DateConstructor;
}
