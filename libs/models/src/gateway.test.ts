import { getEventListeners } from 'node:events';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { cut, raw, reply, stall, startModelServer, status, text, type ModelServer, type ScriptedReply } from '@treadle/testkit';
import { createModelGateway, type ClosableModelGateway } from './gateway.ts';
import type { ModelConnection, Provider } from './provider.ts';
import { callOnce, connectionTo, gatewayTo, reasonOf, requestOf } from './testing.ts';

let server: ModelServer | undefined;
let gateway: ClosableModelGateway | undefined;

async function serve(script: readonly ScriptedReply[], over: Partial<ModelConnection> = {}): Promise<{ server: ModelServer; gateway: ClosableModelGateway }> {
  server = await startModelServer({ dialect: 'ollama', script });
  gateway = gatewayTo(server.url, over);
  return { server, gateway };
}

afterEach(async () => {
  gateway?.close();
  await server?.close();
  server = undefined;
  gateway = undefined;
});

function failureOf(outcome: Awaited<ReturnType<typeof callOnce>>['outcome']) {
  if (outcome.type !== 'failed') throw new Error(`expected a failure, got ${JSON.stringify(outcome)}`);
  return outcome.failure;
}

describe('routing', () => {
  it('fails with model_not_found, and says why, when the model has no connection', async () => {
    const { outcome } = await callOnce(createModelGateway({ connections: {} }));
    expect(failureOf(outcome)).toMatchObject({ error_type: 'model_not_found', detail: 'no connection is configured for the model "small"' });
  });

  it('does not take an inherited property for a connection or a provider', async () => {
    const model = { ...requestOf().model, name: 'constructor' };
    expect(reasonOf((await callOnce(createModelGateway({ connections: {} }), requestOf({ model }))).outcome)).toBe('model_not_found');
  });

  it('fails with model_not_found when nobody knows the provider', async () => {
    const { outcome } = await callOnce(gatewayTo('http://127.0.0.1:1'), requestOf({}, 'toString'));
    expect(failureOf(outcome)).toMatchObject({ error_type: 'model_not_found' });
  });

  it('turns an adapter that throws into a failure', async () => {
    const broken: Provider = { name: 'broken', call: () => Promise.reject(new Error('a bug with key sk-1')) };
    const own = createModelGateway({ providers: { broken }, connections: { small: connectionTo('x', { api_key: 'sk-1' }) } });
    const failure = failureOf((await callOnce(own, requestOf({}, 'broken'))).outcome);
    expect(failure).toMatchObject({ error_type: 'unknown', detail: "the provider's adapter failed: a bug with key [redacted]" });
  });
});

describe('what a call has cost', () => {
  const usage = { input_tokens: 2_000_000, output_tokens: 500_000, cached_tokens: 0, wasted_tokens: 0, cost_usd: 0 };
  const costly = (outcome: Awaited<ReturnType<Provider['call']>>, prices?: Record<string, { input_per_mtok: number; output_per_mtok: number }>) => createModelGateway({
    providers: { costly: { name: 'costly', call: () => Promise.resolve(outcome) } }, connections: { small: connectionTo('x') }, ...(prices === undefined ? {} : { prices }),
  });
  const replied = { type: 'replied', reply: { text: 'x', thinking: '', provider_data: null, calls: [], finish: 'stop', finish_raw: 'stop', usage } } as const;
  const failed = { type: 'failed', failure: { error_type: 'overloaded', detail: 'x', retry_after_s: null, usage } } as const;
  const prices = { small: { input_per_mtok: 0.5, output_per_mtok: 4 } };

  it('is its tokens by the price of its model', async () => {
    const { outcome } = await callOnce(costly(replied, prices), requestOf({}, 'costly'));
    expect(outcome).toMatchObject({ type: 'replied', reply: { usage: { input_tokens: 2_000_000, cost_usd: 3 } } });
  });

  it('counts where it failed, too, and is nothing where there is no price', async () => {
    expect(failureOf((await callOnce(costly(failed, prices), requestOf({}, 'costly'))).outcome).usage).toMatchObject({ cost_usd: 3 });
    expect(failureOf((await callOnce(costly({ ...failed, failure: { ...failed.failure, usage: null } }, prices), requestOf({}, 'costly'))).outcome).usage).toBeNull();
    for (const none of [undefined, { other: prices.small }]) {
      expect((await callOnce(costly(replied, none), requestOf({}, 'costly'))).outcome).toMatchObject({ reply: { usage: { cost_usd: 0 } } });
    }
  });
});

describe('a whole reply', () => {
  it('is answered with its text, whose increments put together are the text', async () => {
    const { server, gateway } = await serve([reply({ text: 'The sum is 3. \n', thinking: 'easy', usage: { prompt: 12, output: 5 } })]);
    const { outcome, increments } = await callOnce(gateway);
    expect(outcome).toEqual({
      type: 'replied',
      reply: {
        text: 'The sum is 3. \n', thinking: 'easy', provider_data: null, calls: [], finish: 'stop', finish_raw: 'stop',
        usage: { input_tokens: 12, output_tokens: 5, cached_tokens: 0, wasted_tokens: 0, cost_usd: 0 },
      },
    });
    expect(increments.length).toBeGreaterThan(1);
    expect(increments.join('')).toBe('The sum is 3. \n');
    server.assertUsedUp();
  });

  it('leaves its connection to the next call', async () => {
    const { server, gateway } = await serve([text('one'), text('two'), text('three')]);
    const answers = [];
    for (let turn = 0; turn < 3; turn++) {
      answers.push((await callOnce(gateway)).outcome);
      expect(await (await server.received(turn + 1)).ended).toBe('answered');
    }
    expect(answers.map(reasonOf)).toEqual(['replied', 'replied', 'replied']);
    expect(new Set(server.requests.map((request) => request.port)).size).toBe(1);
  });

  it('leaves its connection to the next call also where the response ends a little after the last line', async () => {
    const { server, gateway } = await serve([text('one', { chunkDelayMs: 10 }), text('two')]);
    for (let turn = 1; turn <= 2; turn++) {
      expect(reasonOf((await callOnce(gateway)).outcome)).toBe('replied');
      expect(await (await server.received(turn)).ended).toBe('answered');
    }
    expect(new Set(server.requests.map((request) => request.port)).size).toBe(1);
  });

  it('is answered soon, and its connection closed, where the response never ends', async () => {
    const whole = '{"message":{"role":"assistant","content":"all"},"done":true,"done_reason":"stop"}\n';
    const { server, gateway } = await serve([stall({ after: whole.length, of: raw([whole]) })]);
    expect((await callOnce(gateway)).outcome).toMatchObject({ reply: { text: 'all' } });
    expect(await (await server.received(1)).ended).toBe('client_closed');
  });

  it('counts missing token counts as none', async () => {
    const { gateway } = await serve([reply({ text: 'x', usage: null })]);
    expect((await callOnce(gateway)).outcome).toMatchObject({ reply: { usage: { input_tokens: 0, output_tokens: 0 } } });
  });
});

describe('the watchdogs', () => {
  it('end a call whose first token does not come', async () => {
    const { server, gateway } = await serve([stall({ after: 'headers' }), stall({ after: 'nothing' })], { first_token_timeout_ms: 40 });
    for (let call = 1; call <= 2; call++) {
      const failure = failureOf((await callOnce(gateway)).outcome);
      expect(failure).toMatchObject({ error_type: 'timeout', partial_text: '', retry_after_s: null });
      expect(failure.detail).toMatch(/^first_token_timeout/);
      expect(await (await server.received(call)).ended).toBe('client_closed');
    }
  });

  it('end a reply that falls silent, and keep what had come', async () => {
    const first = `${JSON.stringify({ message: { role: 'assistant', content: 'Half a' }, done: false })}\n`;
    const { server, gateway } = await serve([stall({ after: first.length, of: raw([first, 'never']) })], { idle_timeout_ms: 40 });
    const failure = failureOf((await callOnce(gateway)).outcome);
    expect(failure).toMatchObject({ error_type: 'timeout', partial_text: 'Half a' });
    expect(failure.detail).toMatch(/^idle_timeout/);
    expect(await (await server.received(1)).ended).toBe('client_closed');
  });

  it('do not count silence between signs of life together, but end a reply that never ends', async () => {
    const line = `${JSON.stringify({ message: { role: 'assistant', content: '.' }, done: false })}\n`;
    const { gateway } = await serve([raw(Array.from({ length: 200 }, () => line), { chunkDelayMs: 10 })], { idle_timeout_ms: 150, total_timeout_ms: 400 });
    const failure = failureOf((await callOnce(gateway)).outcome);
    expect(failure.error_type).toBe('timeout');
    expect(failure.detail).toMatch(/^total_timeout/);
    expect(failure.partial_text.length).toBeGreaterThan(5);
  });

  it('wait for a cold model as long as the first-token limit says', async () => {
    const { gateway } = await serve([text('warm', { delayMs: 150 })], { first_token_timeout_ms: 5000, idle_timeout_ms: 50 });
    expect(reasonOf((await callOnce(gateway)).outcome)).toBe('replied');
  });

  it('leave no timer behind', async () => {
    const { gateway } = await serve([text('one'), status(500), cut({ afterBytes: 'headers' })]);
    const before = timers();
    for (let call = 0; call < 3; call++) await callOnce(gateway);
    expect(timers()).toBe(before);
  });
});

describe("the caller's abort", () => {
  it('closes the connection in the middle of a reply and keeps what had come', async () => {
    const first = `${JSON.stringify({ message: { role: 'assistant', content: 'Half a' }, done: false })}\n`;
    const { server, gateway } = await serve([stall({ after: first.length, of: raw([first, 'never']) })]);
    const caller = new AbortController();
    const pending = gateway.call({ request: requestOf(), signal: caller.signal, onText: () => caller.abort() });
    expect(failureOf(await pending)).toMatchObject({ error_type: 'aborted', partial_text: 'Half a', usage: null });
    expect(await (await server.received(1)).ended).toBe('client_closed');
  });

  it('closes the connection before the status line', async () => {
    const { server, gateway } = await serve([stall({ after: 'nothing' })]);
    const caller = new AbortController();
    const pending = gateway.call({ request: requestOf(), signal: caller.signal, onText: () => undefined });
    const request = await server.received(1);
    caller.abort();
    expect(failureOf(await pending)).toMatchObject({ error_type: 'aborted', partial_text: '' });
    expect(await request.ended).toBe('client_closed');
  });

  it('sends nothing when it came before the call', async () => {
    const { server, gateway } = await serve([]);
    expect(reasonOf((await callOnce(gateway, requestOf(), AbortSignal.abort())).outcome)).toBe('aborted');
    expect(server.requests).toHaveLength(0);
  });

  it('leaves no listener on its signal, however many calls share it and however they end', async () => {
    const { gateway } = await serve([text('a'), status(503), cut({ afterBytes: 40 }), cut({ afterBytes: 'nothing' }), text('b')]);
    const { signal } = new AbortController();
    for (let call = 0; call < 5; call++) await callOnce(gateway, requestOf(), signal);
    expect(getEventListeners(signal, 'abort')).toHaveLength(0);
  });
});

describe('connections that fail', () => {
  it('names a refused one', async () => {
    const closed = createServer();
    await new Promise<void>((resolve) => { closed.listen(0, '127.0.0.1', resolve); });
    const { port } = closed.address() as AddressInfo;
    await new Promise((resolve) => { closed.close(resolve); });
    const failure = failureOf((await callOnce(gatewayTo(`http://127.0.0.1:${port}`))).outcome);
    expect(failure.error_type).toBe('connect_failed');
    expect(failure.detail).toContain('ECONNREFUSED');
  });

  it('names one that is reset before the status line, and one that does not speak HTTP', async () => {
    const { gateway } = await serve([cut({ afterBytes: 'nothing' })]);
    expect(reasonOf((await callOnce(gateway)).outcome)).toBe('connect_failed');
    const odd = createServer((socket) => { socket.on('error', () => undefined).once('data', () => socket.end('SSH-2.0-x\r\n')); });
    await new Promise<void>((resolve) => { odd.listen(0, '127.0.0.1', resolve); });
    expect(reasonOf((await callOnce(gatewayTo(`http://127.0.0.1:${(odd.address() as AddressInfo).port}`))).outcome)).toBe('connect_failed');
    await new Promise((resolve) => { odd.close(resolve); });
  });

  it('names an address that is none', async () => {
    expect(reasonOf((await callOnce(gatewayTo('http://['))).outcome)).toBe('invalid_request');
  });

  it('does not follow a redirect', async () => {
    const { server, gateway } = await serve([status(307, { location: '/api/version' })]);
    expect(failureOf((await callOnce(gateway)).outcome)).toMatchObject({ error_type: 'invalid_request', detail: 'HTTP 307: no text' });
    expect(server.requests).toHaveLength(1);
  });
});

describe('secrets', () => {
  it('are sent to the server and appear in no failure', async () => {
    const echo = { error: 'unauthorized: authorization was Bearer sk-test-SECRET1 and sk-test-SECRET1' };
    const { server, gateway } = await serve([status(401, {}, echo)], { api_key: 'sk-test-SECRET1' });
    const failure = failureOf((await callOnce(gateway)).outcome);
    expect(server.requests[0]?.headers['authorization']).toBe('Bearer sk-test-SECRET1');
    expect(failure.error_type).toBe('auth_invalid');
    expect(JSON.stringify(failure)).not.toContain('SECRET1');
  });

  it('of an address are kept back too', async () => {
    const failure = failureOf((await callOnce(gatewayTo('ftp://user:hunter22@127.0.0.1:1'))).outcome);
    expect(failure.error_type).toBe('invalid_request');
    expect(JSON.stringify(failure)).not.toContain('hunter22');
  });
});

/** The runner has one of its own. */
function timers(): number {
  return process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length;
}
