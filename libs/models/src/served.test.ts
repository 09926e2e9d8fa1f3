/** What a model's server says of it, for those who set things up. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { startModelServer } from '@treadle/testkit';
import { baseUrlOf, gatewayTo, requestOf, startAnswering, wires } from './testing.ts';

let answering: Awaited<ReturnType<typeof startAnswering>>;

beforeAll(async () => {
  answering = await startAnswering();
});

afterAll(() => answering.close());

describe.each(wires)('%s', (wire) => {
  let close: () => unknown = () => undefined;
  afterEach(() => close());

  const of = (model: string) => ({ ...requestOf().model, provider: wire, model });

  async function said(model: string, body: string | null = null, status = 200) {
    if (body !== null) answering.answerWith({ status, headers: {}, body });
    const gateway = gatewayTo(baseUrlOf(wire, answering.url), { api_key: 'sk-SECRET' });
    close = () => gateway.close();
    return gateway.served(of(model));
  }

  it('is served, or it is said what is there instead', async () => {
    const server = await startModelServer({ dialect: wire, models: [{ name: 'one:latest', context_length: 10, capabilities: [] }, { name: 'claude-x-20260101', context_length: 10, capabilities: [] }] });
    const gateway = gatewayTo(baseUrlOf(wire, `${server.url}${wire === 'openai' ? '' : '/'}`));
    close = async () => {
      gateway.close();
      await server.close();
    };
    expect(await gateway.served(of('one:latest'))).toEqual({ type: 'served' });
    expect(await gateway.served(of('two'))).toEqual({ type: 'not_served', others: ['one:latest', 'claude-x-20260101'] });
    expect(await gateway.served(of('one'))).toMatchObject({ type: wire === 'ollama' ? 'served' : 'not_served' });
    expect(await gateway.served(of('claude-x-latest'))).toMatchObject({ type: wire === 'anthropic' ? 'served' : 'not_served' });
  });

  it('is untold where a server has no list, or one that nobody can read', async () => {
    expect(await said('m', 'not here', 404)).toEqual({ type: 'untold' });
    for (const body of ['<html>', '{}', '[]', 'null']) expect(await said('m', body), body).toEqual({ type: 'untold' });
  });

  it('fails by a reason of the closed set, without the key', async () => {
    expect(await said('m', '{"error":"no: sk-SECRET"}', 401)).toMatchObject({ type: 'failed', failure: { error_type: 'auth_invalid', detail: 'HTTP 401: no: [redacted]' } });
    const gateway = gatewayTo('http://127.0.0.1:1');
    close = () => gateway.close();
    expect(await gateway.served(of('m'))).toMatchObject({ type: 'failed', failure: { error_type: 'connect_failed' } });
  });
});

it('of the scripted stand-in there is nobody to ask', async () => {
  expect(await gatewayTo('http://127.0.0.1:1').served({ name: 'small', provider: 'scripted', model: 'x' })).toEqual({ type: 'untold' });
});
