import { afterEach, describe, expect, it } from 'vitest';
import type { ModelPrice } from '@treadle/core';
import { startModelServer, status, type ModelServer, type ScriptedReply } from '@treadle/testkit';
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

describe('what a provider says of a failure', () => {
  const key = 'sk-abcdefghijklmnopqrstuvwxyz0123456789';
  const detailOf = async (body: string | object, options: Parameters<typeof gatewayTo>[2] = {}): Promise<string> => {
    server = await startModelServer({ dialect: 'ollama', script: [status(400, {}, body)] });
    gateway = gatewayTo(server.url, { api_key: key }, options);
    return failureOf((await callOnce(gateway)).outcome).detail;
  };

  it.each([1, 40, 50, 51, 52, 53, 90, 2000])('is cut behind what is hidden of it: a key %i times', async (times) => {
    for (const body of [`${key} `.repeat(times), { error: { message: `${key},`.repeat(times) } }]) {
      const detail = await detailOf(body);
      expect(detail).toContain('[redacted]');
      expect(detail).not.toContain('abcdef');
      await server?.close();
    }
  });

  it('holds none of the host\'s other secrets', async () => {
    expect(await detailOf('no route for /v1?api_key=query-secret of Bearer-of-another', { secrets: ['query-secret', 'Bearer-of-another', '/v1'] })).toBe('HTTP 400: no route for /v1?api_key=[redacted] of [redacted]');
  });
});

describe('what a call has cost', () => {
  const usage = { input_tokens: 2_000_000, output_tokens: 500_000, cached_tokens: 0, wasted_tokens: 0, cost_usd: 0 };
  const costly = (outcome: Awaited<ReturnType<Provider['call']>>, prices?: Record<string, ModelPrice>) => createModelGateway({
    providers: { costly: { name: 'costly', call: () => Promise.resolve(outcome) } }, connections: { small: connectionTo('x') }, ...(prices === undefined ? {} : { prices }),
  });
  const replied = { type: 'replied', reply: { text: 'x', thinking: '', provider_data: null, calls: [], finish: 'stop', finish_raw: 'stop', usage } } as const;
  const failed = { type: 'failed', failure: { error_type: 'overloaded', detail: 'x', retry_after_s: null, usage } } as const;
  const prices = { small: { input_per_mtok: 0.5, output_per_mtok: 4 } };

  it('is its tokens by the price of its model', async () => {
    const { outcome } = await callOnce(costly(replied, prices), requestOf({}, 'costly'));
    expect(outcome).toMatchObject({ type: 'replied', reply: { usage: { input_tokens: 2_000_000, cost_usd: 3 } } });
  });

  it('is less for input from a cache, where that has a price of its own', async () => {
    const cached = { ...replied, reply: { ...replied.reply, usage: { ...usage, cached_tokens: 1_000_000 } } };
    const own = { small: { ...prices.small, cached_input_per_mtok: 0.1 } };
    expect((await callOnce(costly(cached, own), requestOf({}, 'costly'))).outcome).toMatchObject({ reply: { usage: { cost_usd: 2.6 } } });
    expect((await callOnce(costly(cached, prices), requestOf({}, 'costly'))).outcome).toMatchObject({ reply: { usage: { cost_usd: 3 } } });
  });

  it('counts where it failed, too, and is nothing where there is no price', async () => {
    expect(failureOf((await callOnce(costly(failed, prices), requestOf({}, 'costly'))).outcome).usage).toMatchObject({ cost_usd: 3 });
    expect(failureOf((await callOnce(costly({ ...failed, failure: { ...failed.failure, usage: null } }, prices), requestOf({}, 'costly'))).outcome).usage).toBeNull();
    for (const none of [undefined, { other: prices.small }]) {
      expect((await callOnce(costly(replied, none), requestOf({}, 'costly'))).outcome).toMatchObject({ reply: { usage: { cost_usd: 0 } } });
    }
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
