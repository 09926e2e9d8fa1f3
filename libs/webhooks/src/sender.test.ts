/** What a receiver gets, judged by the library that receivers use. */
import { Webhook, WebhookVerificationError } from 'standardwebhooks';
import { expect, test } from 'vitest';
import { createWebhookSender, type WebhookSenderOptions } from './sender.ts';

const secretOf = (letter: string): string => `whsec_${Buffer.from(letter.repeat(32)).toString('base64')}`;
const [one, two, three] = ['a', 'b', 'c'].map(secretOf) as [string, string, string];
const id = 'msg_0193f0c0a0007000800000000000aa01';
const body = JSON.stringify({ type: 'run.completed', data: { answer: 'grüße 🧵 "x" \u2028' } });

interface Sent { readonly url: string; readonly headers: Record<string, string>; readonly body: string; readonly redirect: string | undefined }

function sender(over: Partial<WebhookSenderOptions> = {}, answer: () => Promise<Response> = async () => new Response('ok')) {
  const sent: Sent[] = [];
  const own = createWebhookSender({
    fetch: (async (url: string, init: RequestInit) => {
      sent.push({ url, headers: { ...(init.headers as Record<string, string>) }, body: init.body as string, redirect: init.redirect });
      return answer();
    }) as typeof fetch,
    endpoints: { backend: { url: 'https://backend.example/hook', secret: two, headers: { 'X-Team': 'one', 'Webhook-Id': 'forged', 'Content-Type': 'text/plain' } } }, others: { secret: one }, version: '1.2.3', nowMs: () => Date.now(), ...over,
  });
  return { sent, send: (target: Parameters<typeof own.send>[0]['target'], signal = AbortSignal.timeout(2000)) => own.send({ id, target, body, signal }) };
}

const judged = ({ headers, body: raw }: Sent, secret: string): unknown => new Webhook(secret).verify(raw, headers);

test('an address is signed with the secret of all, an endpoint with its own, by name or by address', async () => {
  const { sent, send } = sender();
  expect(await send({ url: 'https://a.example/x?y=z' })).toEqual({ type: 'answered', status: 200, retry_after_ms: null });
  await send({ endpoint: 'backend' });
  await send({ url: 'https://BACKEND.example/hook' });
  expect(sent.map(({ url, redirect }) => [url, redirect])).toEqual([['https://a.example/x?y=z', 'manual'], ['https://backend.example/hook', 'manual'], ['https://backend.example/hook', 'manual']]);
  expect(judged(sent[0]!, one)).toEqual(JSON.parse(body));
  for (const each of sent.slice(1)) {
    expect(judged(each, two)).toEqual(JSON.parse(body));
    expect(() => judged(each, one)).toThrow(WebhookVerificationError);
    expect(each.headers['x-team']).toBe('one');
  }
  for (const { headers } of sent) expect(headers).toMatchObject({ 'webhook-id': id, 'content-type': 'application/json', 'user-agent': 'Treadle-Webhooks/1.2.3' });
});

test('while a secret is changed both signatures are sent, and receivers with either one accept', async () => {
  const { sent, send } = sender({ endpoints: { backend: { url: 'https://backend.example/hook', secret: two, previous_secret: one, headers: {} } } });
  await send({ endpoint: 'backend' });
  expect(sent[0]!.headers['webhook-signature']?.split(' ')).toHaveLength(2);
  for (const secret of [one, two]) expect(judged(sent[0]!, secret)).toBeTruthy();
  expect(() => judged(sent[0]!, three)).toThrow(WebhookVerificationError);
});

test('a later attempt bears a later time, and a signature of its own', async () => {
  let now = Date.now() - 60_000;
  const { sent, send } = sender({ nowMs: () => now });
  await send({ url: 'https://a.example/' });
  now += 60_000;
  await send({ url: 'https://a.example/' });
  expect(sent.map(({ headers }) => Number(headers['webhook-timestamp']))).toEqual([Math.floor((now - 60_000) / 1000), Math.floor(now / 1000)]);
  for (const each of sent) expect(judged(each, one)).toBeTruthy();
  expect(sent[0]!.headers['webhook-signature']).not.toBe(sent[1]!.headers['webhook-signature']);
});

test('a changed body, another id and an old time are not accepted by receivers', async () => {
  const { sent, send } = sender();
  await send({ url: 'https://a.example/' });
  const [{ headers, ...rest }] = sent as [Sent];
  expect(() => judged({ ...rest, headers, body: rest.body.replace('run', 'Run') }, one)).toThrow(WebhookVerificationError);
  expect(() => judged({ ...rest, headers: { ...headers, 'webhook-id': 'msg_x' } }, one)).toThrow(WebhookVerificationError);
  const late = sender({ nowMs: () => Date.now() - 600_000 });
  await late.send({ url: 'https://a.example/' });
  expect(() => judged(late.sent[0]!, one)).toThrow(WebhookVerificationError);
});

test('without a secret, or an endpoint of that name, nothing is sent', async () => {
  const { sent, send } = sender({ others: null });
  expect(await send({ url: 'https://a.example/?token=t' })).toEqual({ type: 'failed', why: 'this worker has nothing to sign it with: TREADLE_WEBHOOK_SECRET is not set' });
  for (const endpoint of ['gone', 'constructor']) expect(await send({ endpoint })).toEqual({ type: 'failed', why: `no endpoint is named "${endpoint}" in the configuration of this worker` });
  expect(sent).toEqual([]);
});

test.each([
  ['120', 120_000], ['0', 0], ['Wed, 21 Oct 2026 07:28:30 GMT', 30_000], ['Wed, 21 Oct 2015 07:28:00 GMT', 0], ['soon', null], ['', null],
])('a receiver that says Retry-After: %s', async (header, retry_after_ms) => {
  const { send } = sender({ nowMs: () => Date.parse('2026-10-21T07:28:00Z') }, async () => new Response(null, { status: 503, headers: header === '' ? {} : { 'retry-after': header } }));
  expect(await send({ url: 'https://a.example/' })).toEqual({ type: 'answered', status: 503, retry_after_ms });
});

test('of a large answer a little is read, and one without end is left', async () => {
  let given = 0;
  let left = false;
  const endless = (pause: number) => async () => new Response(new ReadableStream({
    pull: async (controller) => {
      await new Promise((resolve) => { setTimeout(resolve, pause); });
      given += 1024;
      controller.enqueue(new Uint8Array(1024));
    },
    cancel: () => { left = true; },
  }, { highWaterMark: 0 }));
  expect(await sender({}, endless(0)).send({ url: 'https://a.example/' })).toMatchObject({ status: 200 });
  expect(given).toBeLessThanOrEqual(16 * 1024);
  expect(left).toBe(true);
  left = false;
  expect(await sender({}, endless(700)).send({ url: 'https://a.example/' })).toMatchObject({ status: 200 });
  expect(left).toBe(true);
});

test.each([
  [new DOMException('x', 'TimeoutError'), 'no answer in time'], [new DOMException('x', 'AbortError'), 'broken off'], [new TypeError('no connection: connect ECONNREFUSED'), 'no connection: connect ECONNREFUSED'],
  [new TypeError('x'.repeat(1000)), 'x'.repeat(300)],
])('%s is told as %s', async (error, why) => {
  expect(await sender({}, () => Promise.reject(error)).send({ url: 'https://a.example/' })).toEqual({ type: 'failed', why });
});

test('where an endpoint lies, and what a name stands for, is not told', async () => {
  const cause = Object.assign(new Error('connect ECONNREFUSED 10.1.2.3:8080'), { code: 'ECONNREFUSED' });
  const both = Object.assign(new AggregateError([cause, Object.assign(new Error('connect ENETUNREACH fd00::7:8080'), { code: 'ENETUNREACH' })]), { code: 'ECONNREFUSED' });
  const parse = Object.assign(new Error('Parse Error: Header overflow'), { code: 'HPE_HEADER_OVERFLOW' });
  const endpoints = { inner: { url: 'http://hooks.corp.example:8080/x', secret: secretOf('e'), headers: {} } };
  for (const [error, why] of [
    [new TypeError('no connection: connect ECONNREFUSED 10.1.2.3:8080', { cause }), 'no connection: ECONNREFUSED'], [new TypeError('no connection: many', { cause: both }), 'no connection: ECONNREFUSED, ENETUNREACH'],
    [new TypeError('the connection broke: Parse Error: Header overflow', { cause: parse }), 'the connection broke: Parse Error: Header overflow'],
    [new TypeError('hooks.corp.example is not a public address (private), and egress.allow does not list http://hooks.corp.example:8080'), 'the endpoint is not a public address (private), and egress.allow does not list its origin'],
  ] as const) expect(await sender({ endpoints }, () => Promise.reject(error)).send({ endpoint: 'inner' })).toEqual({ type: 'failed', why });
});
