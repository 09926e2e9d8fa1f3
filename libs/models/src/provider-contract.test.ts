/**
 * The promises P1 to P4 of `provider.ts`, through the gateway, for every wire there is. Where bytes are cut: `stream-integrity.test.ts`.
 */
import { getEventListeners } from 'node:events';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { cut, raw, reply, stall, startModelServer, status, text, tool, type ModelServer, type ScriptedReply } from '@treadle/testkit';
import type { ClosableModelGateway } from './gateway.ts';
import { createHttpFetch } from './http/http-fetch.ts';
import type { ModelConnection } from './provider.ts';
import { builtInProviders } from './providers/registry.ts';
import { baseUrlOf, callOnce, connectionTo, endOfText, frame, gatewayTo, moreText, named, reasonOf, requestOf, textSoFar, toolNamed, wires, type Called } from './testing.ts';

it('there is no wire that is not tested here', () => {
  // The scripted stand-in has no wire.
  expect(Object.keys(builtInProviders).filter((name) => name !== 'scripted').sort()).toEqual([...wires].sort());
});

function failureOf(outcome: Called['outcome']) {
  if (outcome.type !== 'failed') throw new Error(`expected a failure, got ${JSON.stringify(outcome)}`);
  return outcome.failure;
}

/** The runner has one of its own. */
function timers(): number {
  return process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length;
}

describe.each(wires)('%s', (wire) => {
  let server: ModelServer | undefined;
  let gateway: ClosableModelGateway | undefined;

  async function serve(script: readonly ScriptedReply[], over: Partial<ModelConnection> = {}): Promise<{ server: ModelServer; gateway: ClosableModelGateway }> {
    server = await startModelServer({ dialect: wire, script });
    gateway = gatewayTo(baseUrlOf(wire, server.url), over);
    return { server, gateway };
  }

  const asking = (over: Parameters<typeof requestOf>[0] = {}) => requestOf(over, wire);
  const ask = (to: ClosableModelGateway, signal?: AbortSignal) => callOnce(to, asking(), signal);

  afterEach(async () => {
    gateway?.close();
    await server?.close();
    server = undefined;
    gateway = undefined;
  });

  describe('calls of a reply', () => {
    const weather = toolNamed('web/weather', { type: 'object', properties: { city: { type: 'string' } } });
    const asksFor = asking({ tools: [weather] });

    it('come in their order, with their ids, names and arguments, beside text, thinking and what they cost', async () => {
      const calls = ['Paris', 'Rome 🌍'].map((city, index) => ({ id: `call_${index}`, name: 'web__weather', args: { city } }));
      const { server, gateway } = await serve([reply({ text: 'Let me see.', thinking: 'two cities', calls, usage: { prompt: 40, output: 9, cached: wire === 'ollama' ? 0 : 30 } })]);
      const { outcome } = await callOnce(gateway, asksFor);
      expect(outcome).toMatchObject({
        type: 'replied', reply: {
          text: 'Let me see.', thinking: 'two cities', finish: 'tool_calls',
          calls: calls.map(({ id, name, args }) => ({ provider_id: id, name, input: args, problem: null })),
          usage: { input_tokens: 40, output_tokens: 9, cached_tokens: wire === 'ollama' ? 0 : 30 },
        },
      });
      server.assertUsedUp();
    });

    it('C15: without arguments have none, however a server says so', async () => {
      const ways = ['', null, undefined, {}];
      const { gateway } = await serve(ways.map((args) => tool('c', 'web__weather', args)));
      for (const _ of ways) expect((await callOnce(gateway, asksFor)).outcome).toMatchObject({ reply: { calls: [{ input: {}, problem: null }] } });
    });

    it('C14: that are cut are no calls that can be run, whatever the end says', async () => {
      const { gateway } = await serve([tool('c1', 'web__weather', '{"city":"Par')]);
      expect((await callOnce(gateway, asksFor)).outcome).toMatchObject({
        reply: { finish: 'tool_calls', calls: [{ provider_id: 'c1', input: {}, problem: expect.stringContaining('{"city":"Par') as string }] },
      });
    });

    it('C16, C17: that are no object are told to the model; encoded twice they are read', async () => {
      const { gateway } = await serve(['5', '"text"', '[1]', JSON.stringify('{"city":"Rome"}')].map((args) => tool('c', 'web__weather', args)));
      for (const _ of [1, 2, 3]) expect((await callOnce(gateway, asksFor)).outcome).toMatchObject({ reply: { calls: [{ input: {}, problem: expect.any(String) as string }] } });
      expect((await callOnce(gateway, asksFor)).outcome).toMatchObject({ reply: { calls: [{ input: { city: 'Rome' }, problem: null }] } });
    });

    it('count for more than the word at the end; a limit counts for more than both', async () => {
      const calls = [{ id: 'x', name: 'web__weather', args: {} }];
      const { gateway } = await serve([reply({ calls, done_reason: 'stop' }), reply({ calls, done_reason: 'length' })]);
      expect((await callOnce(gateway, asksFor)).outcome).toMatchObject({ reply: { finish: 'tool_calls', calls: [{ name: 'web__weather' }] } });
      expect((await callOnce(gateway, asksFor)).outcome).toMatchObject({ reply: { finish: 'length', finish_raw: wire === 'anthropic' ? 'max_tokens' : 'length' } });
    });
  });

  describe('a request', () => {
    it('without anything of the user is not sent', async () => {
      expect(failureOf((await callOnce(gatewayTo('http://127.0.0.1:1'), asking({ messages: [] }))).outcome).error_type).toBe('history_invalid');
    });

    it('of one call takes nothing from another that goes at the same time', async () => {
      const { gateway } = await serve(['one', 'two', 'three'].map((word) => text(`${word} `.repeat(20), { chunkDelayMs: 2 })));
      const called = await Promise.all([1, 2, 3].map(() => ask(gateway)));
      expect(called.map(({ increments }) => increments.join('')).sort()).toEqual(['one', 'three', 'two'].map((word) => `${word} `.repeat(20)));
    });

    it('carries its key in the header of its wire, and no failure repeats it', async () => {
      const echo = { error: { message: 'unauthorized: authorization was Bearer sk-test-SECRET1 and sk-test-SECRET1' } };
      const { server, gateway } = await serve([status(401, {}, echo)], { api_key: 'sk-test-SECRET1' });
      const failure = failureOf((await ask(gateway)).outcome);
      expect(failure.error_type).toBe('auth_invalid');
      expect(JSON.stringify(failure)).not.toContain('SECRET1');
      const { authorization, 'x-api-key': key } = server.requests[0]?.headers ?? {};
      expect({ authorization, key }).toEqual(wire === 'anthropic' ? { authorization: undefined, key: 'sk-test-SECRET1' } : { authorization: 'Bearer sk-test-SECRET1', key: undefined });
    });

    it('with a key that no header can hold is refused here, and the key is not told', async () => {
      const failure = failureOf((await ask(gatewayTo('http://127.0.0.1:1', { api_key: 'sk-SECRET1\nX' }))).outcome);
      expect(failure.error_type).toBe('invalid_request');
      expect(JSON.stringify(failure)).not.toContain('SECRET1');
    });

    it('takes nothing from the environment', async () => {
      const own = { OPENAI_API_KEY: 'sk-env', OPENAI_BASE_URL: 'http://127.0.0.1:1', OPENAI_CUSTOM_HEADERS: 'x-env: 1', ANTHROPIC_API_KEY: 'sk-env', ANTHROPIC_AUTH_TOKEN: 'sk-env', ANTHROPIC_BASE_URL: 'http://127.0.0.1:1', ANTHROPIC_CUSTOM_HEADERS: 'x-env: 1', OLLAMA_API_KEY: 'sk-env' };
      const before = { ...process.env };
      Object.assign(process.env, own);
      try {
        const { server, gateway } = await serve([text('ok')]);
        expect(reasonOf((await ask(gateway)).outcome)).toBe('replied');
        const sent = JSON.stringify([server.requests[0]?.headers, server.requests[0]?.body]);
        expect(sent).not.toMatch(/sk-env|x-env|in the headers/);
        expect(server.requests[0]?.headers['authorization']).toBeUndefined();
        expect(server.requests[0]?.headers['x-api-key']).toBeUndefined();
      } finally {
        for (const name of Object.keys(own)) delete process.env[name];
        Object.assign(process.env, before);
      }
    });
  });

  describe('a whole reply', () => {
    it('is answered with its text, whose increments put together are the text', async () => {
      const { server, gateway } = await serve([reply({ text: 'The sum is 3. \n', thinking: 'easy', usage: { prompt: 12, output: 5 } })]);
      const { outcome, increments } = await ask(gateway);
      expect(outcome).toEqual({
        type: 'replied',
        reply: {
          text: 'The sum is 3. \n', thinking: 'easy', provider_data: wire === 'anthropic' ? expect.anything() : null, calls: [], finish: 'stop', finish_raw: wire === 'anthropic' ? 'end_turn' : 'stop',
          usage: { input_tokens: 12, output_tokens: 5, cached_tokens: 0, wasted_tokens: 0, cost_usd: 0 }, served_as: expect.stringMatching(/./) as string,
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
        answers.push((await ask(gateway)).outcome);
        expect(await (await server.received(turn + 1)).ended).toBe('answered');
      }
      expect(answers.map(reasonOf)).toEqual(['replied', 'replied', 'replied']);
      expect(new Set(server.requests.map((request) => request.port)).size).toBe(1);
    });

    it('leaves its connection to the next call also where the response ends a little after the last line', async () => {
      const { server, gateway } = await serve([text('one', { chunkDelayMs: 10 }), text('two')]);
      for (let turn = 1; turn <= 2; turn++) {
        expect(reasonOf((await ask(gateway)).outcome)).toBe('replied');
        expect(await (await server.received(turn)).ended).toBe('answered');
      }
      expect(new Set(server.requests.map((request) => request.port)).size).toBe(1);
    });

    it('is answered soon, and its connection closed, where the response never ends', async () => {
      const whole = `${textSoFar(wire, 'all')}${endOfText(wire)}`;
      const { server, gateway } = await serve([stall({ after: whole.length, of: raw([whole]) })]);
      expect((await ask(gateway)).outcome).toMatchObject({ reply: { text: 'all' } });
      expect(await (await server.received(1)).ended).toBe('client_closed');
    });

    it('counts missing token counts as none', async () => {
      const { gateway } = await serve([reply({ text: 'x', usage: null })]);
      expect((await ask(gateway)).outcome).toMatchObject({ reply: { usage: { input_tokens: 0, output_tokens: 0 } } });
    });
  });

  describe('the watchdogs', () => {
    it('end a call whose first token does not come', async () => {
      const { server, gateway } = await serve([stall({ after: 'headers' }), stall({ after: 'nothing' })], { first_token_timeout_ms: 40 });
      for (let call = 1; call <= 2; call++) {
        const failure = failureOf((await ask(gateway)).outcome);
        expect(failure).toMatchObject({ error_type: 'timeout', partial_text: '', retry_after_s: null });
        expect(failure.detail).toMatch(/^first_token_timeout/);
        expect(await (await server.received(call)).ended).toBe('client_closed');
      }
    });

    it('end a reply that falls silent, and keep what had come', async () => {
      const first = textSoFar(wire, 'Half a');
      const { server, gateway } = await serve([stall({ after: first.length, of: raw([first, 'never']) })], { idle_timeout_ms: 40 });
      const failure = failureOf((await ask(gateway)).outcome);
      expect(failure).toMatchObject({ error_type: 'timeout', partial_text: 'Half a' });
      expect(failure.detail).toMatch(/^idle_timeout/);
      expect(await (await server.received(1)).ended).toBe('client_closed');
    });

    it('do not count silence between signs of life together, but end a reply that never ends', async () => {
      const lines = [textSoFar(wire, '.'), ...Array.from({ length: 400 }, () => moreText(wire, '.'))];
      const { gateway } = await serve([raw(lines, { chunkDelayMs: 10 })], { idle_timeout_ms: 1200, total_timeout_ms: 2000 });
      const failure = failureOf((await ask(gateway)).outcome);
      expect(failure.error_type).toBe('timeout');
      expect(failure.detail).toMatch(/^total_timeout/);
      expect(failure.partial_text.length).toBeGreaterThan(1);
    });

    it('are not fed by what only keeps the connection alive', async () => {
      if (wire === 'ollama') return;
      const alive = wire === 'openai' ? ': PROCESSING\n\n' : named({ type: 'ping' });
      const { gateway } = await serve([raw([textSoFar(wire, 'Half a'), ...Array.from({ length: 400 }, () => alive)], { chunkDelayMs: 10 })], { idle_timeout_ms: 100 });
      const failure = failureOf((await ask(gateway)).outcome);
      expect(failure).toMatchObject({ error_type: 'timeout', partial_text: 'Half a' });
      expect(failure.detail).toMatch(/^idle_timeout/);
    });

    it('wait for a cold model as long as the first-token limit says', async () => {
      const { gateway } = await serve([text('warm', { delayMs: 150 })], { first_token_timeout_ms: 5000, idle_timeout_ms: 50 });
      expect(reasonOf((await ask(gateway)).outcome)).toBe('replied');
    });

    it('leave no timer behind', async () => {
      const { gateway } = await serve([text('one'), status(500), cut({ afterBytes: 'headers' })]);
      const before = timers();
      for (let call = 0; call < 3; call++) await ask(gateway);
      expect(timers()).toBe(before);
    });
  });

  it('P2: a provider lets go of its connection by itself, also where nobody aborts', async () => {
    const error = wire === 'ollama' ? '{"error":"x"}\n' : wire === 'openai' ? frame({ error: 'x' }) : named({ type: 'error', error: { message: 'x' } });
    const ends = [textSoFar(wire, 'Half') + error, `${textSoFar(wire, 'all')}${endOfText(wire)}`];
    const { server } = await serve(ends.map((end) => stall({ after: Buffer.byteLength(end), of: raw([end]) })));
    const http = createHttpFetch();
    for (const [index, type] of ['failed', 'replied'].entries()) {
      const outcome = await builtInProviders[wire]?.call({
        request: asking(), connection: connectionTo(baseUrlOf(wire, server.url)), signal: new AbortController().signal, fetch: http.fetch, nowMs: () => 0, onText: () => undefined, onProgress: () => undefined,
      });
      expect(outcome?.type).toBe(type);
      expect(await (await server.received(index + 1)).ended).toBe('client_closed');
    }
    http.close();
  });

  describe("the caller's abort", () => {
    it('closes the connection in the middle of a reply and keeps what had come', async () => {
      const first = textSoFar(wire, 'Half a');
      const { server, gateway } = await serve([stall({ after: first.length, of: raw([first, 'never']) })]);
      const caller = new AbortController();
      const pending = gateway.call({ request: asking(), signal: caller.signal, onText: () => caller.abort() });
      expect(failureOf(await pending)).toMatchObject({ error_type: 'aborted', partial_text: 'Half a' });
      expect(await (await server.received(1)).ended).toBe('client_closed');
    });

    it('closes the connection before the status line', async () => {
      const { server, gateway } = await serve([stall({ after: 'nothing' })]);
      const caller = new AbortController();
      const pending = gateway.call({ request: asking(), signal: caller.signal, onText: () => undefined });
      const request = await server.received(1);
      caller.abort();
      expect(failureOf(await pending)).toMatchObject({ error_type: 'aborted', partial_text: '' });
      expect(await request.ended).toBe('client_closed');
    });

    it('sends nothing when it came before the call', async () => {
      const { server, gateway } = await serve([]);
      expect(reasonOf((await ask(gateway, AbortSignal.abort())).outcome)).toBe('aborted');
      expect(server.requests).toHaveLength(0);
    });

    it('leaves no listener on its signal, however many calls share it and however they end', async () => {
      const { gateway } = await serve([text('a'), status(503), cut({ afterBytes: 40 }), cut({ afterBytes: 'nothing' }), text('b')]);
      const { signal } = new AbortController();
      for (let call = 0; call < 5; call++) await ask(gateway, signal);
      expect(getEventListeners(signal, 'abort')).toHaveLength(0);
    });
  });

  describe('connections that fail', () => {
    it('names a refused one', async () => {
      const closed = createServer();
      await new Promise<void>((resolve) => { closed.listen(0, '127.0.0.1', resolve); });
      const { port } = closed.address() as AddressInfo;
      await new Promise((resolve) => { closed.close(resolve); });
      const failure = failureOf((await ask(gatewayTo(`http://127.0.0.1:${port}`))).outcome);
      expect(failure.error_type).toBe('connect_failed');
      expect(failure.detail).toContain('ECONNREFUSED');
    });

    it('names one that is reset before the status line, and one that does not speak HTTP', async () => {
      const { gateway } = await serve([cut({ afterBytes: 'nothing' })]);
      expect(reasonOf((await ask(gateway)).outcome)).toBe('connect_failed');
      const odd = createServer((socket) => { socket.on('error', () => undefined).once('data', () => socket.end('SSH-2.0-x\r\n')); });
      await new Promise<void>((resolve) => { odd.listen(0, '127.0.0.1', resolve); });
      expect(reasonOf((await ask(gatewayTo(`http://127.0.0.1:${(odd.address() as AddressInfo).port}`))).outcome)).toBe('connect_failed');
      await new Promise((resolve) => { odd.close(resolve); });
    });

    it('names an address that is none', async () => {
      expect(reasonOf((await ask(gatewayTo('http://['))).outcome)).toBe('invalid_request');
    });

    it('does not follow a redirect', async () => {
      const { server, gateway } = await serve([status(307, { location: '/api/version' })]);
      expect(failureOf((await ask(gateway)).outcome)).toMatchObject({ error_type: 'invalid_request', detail: 'HTTP 307: no text' });
      expect(server.requests).toHaveLength(1);
    });
  });
});
