/** R18, C56 and C86: a run that kills its worker each time is ended, beside healthy runs that complete; others that misbehave harm nobody. */
import { join } from 'node:path';
import { cut, reply, text, type ChatBody } from '@treadle/testkit';
import { afterEach, expect, test } from 'vitest';
import { problemsOf } from './checker.ts';
import { allEnded, historyOf, post, postRuns, startChaos, usagePerReply, usualScript, type ChaosStage } from './stage.ts';

const configFile = join(import.meta.dirname, 'misbehaving.config.ts');
const usage = { prompt: usagePerReply.input, output: usagePerReply.output };

let stage: ChaosStage | null = null;
afterEach(async () => {
  await stage?.stop();
  stage = null;
});

const labelOf = (body: ChatBody): string => /\[\[(\w+)/.exec(JSON.stringify(body.messages ?? []))?.[1] ?? '';
const answered = (body: ChatBody): boolean => (body.messages ?? []).some((message) => message.role === 'tool');

test('C56: a run that kills its worker is poisoned after three deaths; the healthy ones beside it, which die with it, complete', async () => {
  const here = stage = await startChaos({
    configFile, env: { TREADLE_POISON_LIMIT: '3', WORKER_CONCURRENCY: '30', TREADLE_LEASE_MS: '3000' },
    // A turn of a healthy run takes longer than the time between two deaths: each death takes all of them along.
    script: (body) => labelOf(body) === 'poison' ? reply({ usage, calls: [{ id: null, name: 'die', args: {} }, { id: null, name: 't__look', args: { v: 'x' } }] }, { delayMs: 400 }) : { ...usualScript(body), delivery: { delayMs: 800 } },
  });
  const { id } = await post(here.url, 'poison', { agent: 'tester', input: '[[poison]]' });
  const healthy = (await postRuns(here, Array.from({ length: 20 }, (_, index) => `healthy${index}`))).map((run) => run.id);
  await here.workers.start(1);
  await allEnded(here, [id!, ...healthy], 150_000);
  const history = await historyOf(here, [id!, ...healthy], [], { expectedEnds: ['poisoned', 'answered'] });
  expect(problemsOf(history)).toEqual([]);
  const byId = new Map(history.runs.map((run) => [run.id, `${run.status}: ${String(run.stop_reason)}`]));
  expect([...new Set(healthy.map((each) => byId.get(each)))]).toEqual(['completed: answered']);
  const starts = here.ledger().filter((line) => line.phase === 'start' && line.tool === 'die');
  // A call without a key is not begun again: what the model asks for anew is what kills again.
  expect(starts.length).toBeLessThanOrEqual(3);
  expect(starts.length).toBeGreaterThanOrEqual(1);
  expect(here.workers.ends()).toBeLessThanOrEqual(3);
  process.stdout.write(`poison: ${here.workers.ends()} workers died, the run ended ${String(byId.get(id!))}\n`);
}, 180_000);

test('C86: tools that throw nothing, throw later, or emit errors that nobody hears, and models that break off, end no process', async () => {
  const bad = ['throw_null', 'throw_later', 'reject_later', 'emit_error'];
  const broken = new Set<string>();
  const here = stage = await startChaos({
    configFile,
    script: (body) => {
      const label = labelOf(body);
      if (label.startsWith('healthy')) return usualScript(body);
      if (label.startsWith('reset') && !broken.has(label)) {
        broken.add(label);
        return cut({ afterBytes: 40, of: text('This breaks off.') });
      }
      if (label.startsWith('reset')) return reply({ text: 'done', usage });
      return answered(body) ? reply({ text: 'done', usage }) : reply({ usage, calls: [{ id: null, name: bad.find((name) => label.startsWith(name.replace('_', ''))) ?? '', args: {} }] });
    },
  });
  await here.workers.start(1);
  const pid = here.workers.roles[0]?.pid;
  const keys = [...Array.from({ length: 20 }, (_, index) => `healthy${index}`), ...bad.map((name) => `${name.replace('_', '')}0`), 'reset0', 'reset1'];
  const ids = (await postRuns(here, keys)).map((run) => run.id);
  await allEnded(here, ids, 90_000);
  expect(problemsOf(await historyOf(here, ids, []))).toEqual([]);
  expect(here.workers.roles.map((role) => role.pid)).toEqual([pid]);
  expect(here.workers.ends()).toBe(0);
}, 150_000);
