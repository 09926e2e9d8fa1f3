/**
 * C81, R26, R27: what is told of ended runs, with workers that are killed right behind the ends, and receivers of every bad kind. All waits
 * are the product's, five thousand times as short.
 */
import { text } from '@treadle/testkit';
import { Webhook } from 'standardwebhooks';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startStage, until, type Role, type Stage } from '../e2e/processes.ts';
import { startReceiver, webhookSecret, type Answering, type Receiver } from './receiver.ts';

const [others, backend, before] = ['o', 'b', 'p'].map(webhookSecret) as [string, string, string];

const ok: Answering = (response) => { response.end('ok'); };
const failing: Answering = (response) => { response.writeHead(500).end('broken'); };
const never: Answering = () => undefined;
const reset: Answering = (_, socket) => { socket.resetAndDestroy(); };
/** What a run meets, by its number; after that everything is taken. */
const plans: readonly (readonly Answering[])[] = [[failing, never, reset], [failing], [reset, failing], []];

let stage: Stage;
let worker: Role;
const receivers: Receiver[] = [];
/** Each takes the runs of one plan, so that those that wait for an answer hold back no others. */
let planned: readonly Receiver[];
let kinds: Record<'dead' | 'gone' | 'canary' | 'redirect' | 'endless' | 'drip' | 'named', Receiver>;
let isOpen = false;
let given = 0;

async function receiver(answer: Answering, secret = others): Promise<Receiver> {
  const started = await startReceiver(secret, answer);
  receivers.push(started);
  return started;
}

beforeAll(async () => {
  planned = await Promise.all(plans.map((plan) => receiver((response, socket, received, nth) => { (plan[nth] ?? ok)(response, socket, received, nth); })));
  const canary = await receiver(ok);
  kinds = {
    canary, dead: await receiver((...asked) => { (isOpen ? ok : failing)(...asked); }), gone: await receiver((response) => { response.writeHead(410).end(); }),
    redirect: await receiver((response) => { response.writeHead(302, { location: `${canary.url}/hook` }).end(); }), named: await receiver(ok, backend),
    endless: await receiver((response, socket) => {
      const more = (): void => { while (!socket.destroyed && response.write(Buffer.alloc(16 * 1024))) given += 16 * 1024; };
      response.on('drain', more).writeHead(200);
      more();
    }),
    drip: await receiver((_, socket) => {
      socket.write('HTTP/1.1 200 OK\r\nx-drip: ');
      const timer = setInterval(() => { socket.write('.'); }, 20);
      socket.on('error', () => undefined).on('close', () => { clearInterval(timer); });
    }),
  };
  stage = await startStage({
    model: { script: () => text('The answer.') }, agent: { tools: [] },
    config: {
      webhooks: { backend: { url: `${kinds.named.url}/hook?key=k`, secret: backend, previous_secret: before, headers: { 'x-team': 'blue' } }, inside: { url: canary.url, secret: backend } },
      egress: { allow: receivers.filter((each) => each !== canary).map(({ url }) => url) },
    },
    env: { TREADLE_WEBHOOK_SECRET: others, TREADLE_WEBHOOK_RETRY_MS: '1', TREADLE_WEBHOOK_TIMEOUT_MS: '400' },
  });
  worker = await stage.startWorker();
});

afterAll(async () => {
  await stage.stop();
  await Promise.all(receivers.map((each) => each.stop()));
});

const idOf = (run_id: string): string => run_id.replace('run_', 'msg_');
const begin = async (webhook: string | { endpoint: string }) => (await stage.client.createRun({ agent: 'tester', input: 'go', webhook })).id;
const deliveryOf = async (run_id: string) => (await stage.client.deliveries({ run_id })).data[0];
const came = (run_id: string, status: string) => until(`${run_id} is ${status}`, async () => { const found = await deliveryOf(run_id); return found?.status === status ? found : undefined; }, 60_000);
const failed = (run_id: string) => until(`${run_id} fails`, async () => { const found = await deliveryOf(run_id); return (found?.attempts ?? 0) > 0 ? found : undefined; });

/** One line for each thing that is not as it was promised. */
function faultsOf(receiver: Receiver, run_id: string): string[] {
  const all = receiver.of(idOf(run_id));
  const said = (fault: string): string => `${run_id}: ${fault}`;
  return [
    ...(all.length === 0 ? [said('never came')] : []),
    ...all.flatMap(({ fault }) => fault === null ? [] : [said(fault)]),
    ...(new Set(all.map(({ body }) => body)).size > 1 ? [said('came with different bodies')] : []),
    // Two attempts that lie seconds apart bear two times.
    ...all.slice(1).filter((each, index) => each.receivedMs - all[index]!.receivedMs > 2000 && each.timestamp <= all[index]!.timestamp).map(() => said('was stamped with an old time')),
  ];
}

test('C81: 200 runs are told at least once each, over receivers that fail and workers that are killed behind the ends', async () => {
  const dead = await begin(`${kinds.dead.url}/hook`);
  const runs = await Promise.all(Array.from({ length: 200 }, async (_, n) => ({ run_id: await begin(`${planned[n % plans.length]!.url}/hook?run=${n}`), receiver: planned[n % plans.length]!, nth: n % plans.length })));
  for (const share of [40, 110]) {
    await until('some have ended', () => planned.reduce((sum, each) => sum + new Set(each.received.map(({ id }) => id)).size, 0) >= share);
    worker.kill('SIGKILL');
    await worker.exited;
    worker = await stage.startWorker();
  }
  for (const { run_id } of runs) await came(run_id, 'delivered');
  expect(runs.flatMap(({ run_id, receiver }) => faultsOf(receiver, run_id))).toEqual([]);
  for (const { run_id, receiver, nth } of runs) expect(receiver.of(idOf(run_id)).length).toBeGreaterThan(plans[nth]!.length);

  // What a receiver is told is the run as it is read, and nothing that a receiver does changes the run.
  for (const { run_id, receiver } of runs.slice(0, 8)) {
    const { archived_seq: _, ...run } = await stage.client.run(run_id);
    const told = JSON.parse(receiver.of(idOf(run_id))[0]!.body) as { type: string; timestamp: string; data: Record<string, unknown> };
    expect(told).toMatchObject({ type: 'run.completed', timestamp: run.ended_at, data: run });
  }
  for (const { run_id } of runs) expect(await stage.client.run(run_id)).toMatchObject({ status: 'completed', answer: 'The answer.' });

  // The one whose receiver always refuses is given up after eleven attempts, more or less those that the kills broke off, and then brought home.
  expect(await came(dead, 'dead')).toMatchObject({ attempts: 11, last_status: 500, last_error: 'the receiver answered 500', url: `${kinds.dead.url}/hook`, next_attempt_at: null });
  const refused = kinds.dead.of(idOf(dead)).length;
  expect(new Set(kinds.dead.of(idOf(dead)).map(({ timestamp }) => timestamp)).size).toBeGreaterThan(3);
  isOpen = true;
  await stage.client.redeliver(idOf(dead));
  expect(await came(dead, 'delivered')).toMatchObject({ attempts: 12, last_status: 200, last_error: null });
  expect(kinds.dead.of(idOf(dead)).length).toBe(refused + 1);
  expect(faultsOf(kinds.dead, dead)).toEqual([]);
  expect(await stage.client.run(dead)).toMatchObject({ status: 'completed', answer: 'The answer.' });
}, 120_000);

test('R26: an endpoint by name is signed with its own secret and the one before, under its own headers', async () => {
  const run_id = await begin({ endpoint: 'backend' });
  expect(await came(run_id, 'delivered')).toMatchObject({ endpoint: 'backend', url: null });
  const [received] = kinds.named.of(idOf(run_id));
  expect([received!.fault, received!.headers['x-team'], received!.headers['user-agent']]).toEqual([null, 'blue', expect.stringMatching(/^Treadle-Webhooks\/\d/)]);
  expect(new Webhook(before).verify(received!.body, received!.headers as Record<string, string>)).toBeTruthy();
  expect(() => new Webhook(others).verify(received!.body, received!.headers as Record<string, string>)).toThrow();
  await expect(begin({ endpoint: 'nobody' })).rejects.toMatchObject({ status: 422, problems: [{ path: 'webhook.endpoint' }] });
});

test('R26: one that is gone is dead at once, an endless answer is not read, and one that drips is cut', async () => {
  const [gone, endless, drip] = [await begin(kinds.gone.url), await begin(kinds.endless.url), await begin(kinds.drip.url)];
  expect(await came(gone, 'dead')).toMatchObject({ attempts: 1, last_status: 410 });
  await came(endless, 'delivered');
  // A little, and what the system's buffers take.
  expect(given).toBeLessThan(32 * 1024 * 1024);
  expect(await failed(drip)).toMatchObject({ last_status: null, last_error: 'no answer in time' });
});

test('R27, C82: nobody inside is told, neither straight nor by way of a redirect', async () => {
  for (const webhook of [kinds.canary.url, kinds.canary.url.replace('127.0.0.1', '2130706433'), kinds.canary.url.replace('127.0.0.1', 'localhost'), kinds.canary.url.replace('127.0.0.1', '[::1]'), 'ftp://x', 'http://user@127.0.0.1']) {
    await expect(begin(webhook), webhook).rejects.toMatchObject({ status: 422, problems: [{ path: 'webhook' }] });
  }
  const [inside, redirected] = [await begin({ endpoint: 'inside' }), await begin(kinds.redirect.url)];
  expect(await failed(inside)).toMatchObject({ last_status: null, last_error: expect.stringContaining('is not a public address') as string });
  expect(await failed(redirected)).toMatchObject({ last_status: 302, last_error: 'the receiver answered 302' });
  expect(kinds.canary.received).toEqual([]);
});

test('with its run a delivery is gone, and the counters say what came of all attempts', async () => {
  const run_id = await begin(planned[3]!.url);
  await came(run_id, 'delivered');
  await stage.client.remove(run_id);
  expect(await deliveryOf(run_id)).toBeUndefined();
  const metrics = await (await fetch(`${worker.url}/metrics`)).text();
  for (const outcome of ['delivered', 'failed', 'dead']) expect(Number(new RegExp(`^treadle_webhook_deliveries_total\\{outcome="${outcome}"\\} (\\d+)$`, 'm').exec(metrics)?.[1]), outcome).toBeGreaterThan(0);
  expect(worker.output()).not.toMatch(/unhandled|uncaught|key=k|\?run=/);
});
