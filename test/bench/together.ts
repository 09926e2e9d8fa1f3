/**
 * What a batch of calls that may run together costs beside the slowest of them: `npm run bench:together`. One worker, eight calls of a second
 * each in one reply, by the log: from the reply to the last result, against the second that each takes.
 */
import { reply, text, type ChatBody } from '@treadle/testkit';
import type { RunEvent } from '@treadle/core';
import { startStage } from '../e2e/processes.ts';

const rounds = Number(process.env['ROUNDS'] ?? 10);
const [calls, ms] = [8, 1000];
const batch = Array.from({ length: calls }, () => ({ id: null, name: 'test__slow_lookup', args: { ms } }));
const script = ({ messages = [] }: ChatBody) => messages.some(({ role }) => role === 'tool') ? text('done') : reply({ calls: batch });

const stage = await startStage({ model: { script }, tools: { 'test/slow_lookup': { effect: 'read', parallel: 'parallel' } } });
const took: number[] = [];
try {
  await stage.startWorker();
  for (let round = 0; round < rounds; round++) {
    const { id } = await stage.client.createRun({ agent: 'tester', input: 'Look up eight things.' });
    const at: { from?: number; to?: number } = {};
    for await (const event of stage.client.events(id) as AsyncIterable<RunEvent>) {
      if (event.type === 'tool_use') at.from ??= event.ts;
      if (event.type === 'tool_result') at.to = event.ts;
    }
    took.push((at.to ?? 0) - (at.from ?? 0));
  }
} finally {
  await stage.stop();
}
took.sort((one, more) => one - more);
const seconds = (value: number | undefined): string => `${(value ?? 0).toFixed(3)} s`;
process.stdout.write(`${calls} calls of ${ms} ms together, ${rounds} times: median ${seconds(took[Math.floor(took.length / 2)])}, longest ${seconds(took.at(-1))}; one after the other they are ${calls} s\n`);
process.exit();
