/**
 * How long a run stands still when its worker goes: `npm run bench:recovery`. Two workers at the contract's defaults; one of them is
 * killed (SIGKILL), or asked to stop (SIGTERM) with less grace than its turns need, while every run waits for a slow model.
 *
 * Measured by the log: from the kill (or the exit) to `turn_start` of the same turn elsewhere, by clocks of one machine.
 */
import { reply, type ChatBody } from '@treadle/testkit';
import type { RunEvent } from '@treadle/core';
import { until } from '../e2e/processes.ts';
import { postRuns, startChaos } from '../chaos/stage.ts';

const rounds = Number(process.env['ROUNDS'] ?? 5);
const runsPerRound = 10;

async function measure(signal: 'SIGKILL' | 'SIGTERM'): Promise<number[]> {
  // Longer than a worker takes to start, on whatever machine: a run that has its reply is not taken over.
  const slow = (_: ChatBody) => reply({ text: 'done' }, { delayMs: 30_000 });
  const stage = await startChaos({ script: slow, env: { TREADLE_LEASE_MS: '8000', TREADLE_DRAIN_TIMEOUT_MS: '500', WORKER_CONCURRENCY: '50' } });
  const waits: number[] = [];
  try {
    for (let round = 0; round < rounds; round++) {
      const victim = await stage.more('worker');
      const ids = (await postRuns(stage, Array.from({ length: runsPerRound }, (_, index) => `${round}-${index}`))).map(({ id }) => id);
      await until('all runs are with the model', () => stage.model.parallel.now >= runsPerRound);
      const other = await stage.more('worker');
      victim.kill(signal);
      if (signal === 'SIGTERM') await victim.exited;
      const fromMs = Date.now();
      for (const id of ids) waits.push(await takenOver(stage.url, id) * 1000 - fromMs);
      await Promise.all(ids.map((id) => stage.client.cancel(id)));
      await until('nothing is with the model', () => stage.model.parallel.now === 0);
      other.kill('SIGTERM');
      await other.exited;
      process.stdout.write(`${signal}: round ${round + 1} of ${rounds}\n`);
    }
  } finally {
    await stage.stop();
  }
  return waits.sort((one, more) => one - more);
}

/** `ts` of the first turn that somebody else began again, in seconds. */
async function takenOver(url: string, id: string): Promise<number> {
  return until(`${id} is taken over`, async () => {
    const response = await fetch(`${url}/v1/runs/${id}/events`, { headers: { accept: 'application/x-ndjson' } });
    const events = (await response.text()).split('\n').filter((line) => line !== '').map((line) => JSON.parse(line) as RunEvent);
    return events.find((event) => event.type === 'turn_start' && event.attempt > 1)?.ts;
  }, 60_000);
}

for (const signal of ['SIGKILL', 'SIGTERM'] as const) {
  const waits = await measure(signal);
  const at = (part: number): string => `${((waits[Math.min(waits.length - 1, Math.floor(waits.length * part))] ?? 0) / 1000).toFixed(2)} s`;
  process.stdout.write(`${signal}: ${waits.length} runs taken over; median ${at(0.5)}, p99 ${at(0.99)}, longest ${at(1)}\n`);
}
process.exit();
