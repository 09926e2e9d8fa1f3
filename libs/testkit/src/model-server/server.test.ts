import { afterEach, describe, expect, it } from 'vitest';
import { cut, raw, reply, stall, status, text, tool, type ScriptedReply } from './replies.ts';
import { startModelServer, type ModelServer, type ModelServerOptions } from './server.ts';
import { toolTurns } from './tool-turns.ts';

let server: ModelServer;

async function serve(script: NonNullable<ModelServerOptions['script']>, options: Partial<ModelServerOptions> = {}): Promise<void> {
  server = await startModelServer({ dialect: 'ollama', script, ...options });
}

afterEach(() => server.close());

function chat(over: Record<string, unknown> = {}, signal?: AbortSignal): Promise<Response> {
  const body = { model: 'm', messages: [{ role: 'user', content: 'hi' }], truncate: false, options: { num_ctx: 4096 }, ...over };
  return fetch(`${server.url}/api/chat`, { method: 'POST', body: JSON.stringify(body), ...(signal === undefined ? {} : { signal }) });
}

interface Line { message: { content: string; tool_calls?: unknown }; done: boolean; done_reason?: string }

async function lines(response: Response): Promise<Line[]> {
  return (await response.text()).trim().split('\n').map((line) => JSON.parse(line) as Line);
}

describe('replies', () => {
  it('are streamed as NDJSON that ends with its done line', async () => {
    await serve([reply({ text: 'a b 🌍', calls: [{ id: null, name: 'add', args: { x: 1 } }] })]);
    const received = await lines(await chat());
    expect(received.map((line) => line.message.content).join('')).toBe('a b 🌍');
    expect(received.flatMap((line) => line.message.tool_calls ?? [])).toEqual([{ function: { index: 0, name: 'add', arguments: { x: 1 } } }]);
    expect(received.map((line) => line.done)).toEqual([...received.slice(1).map(() => false), true]);
    expect(received.at(-1)?.done_reason).toBe('stop');
    expect(await server.requests[0]!.ended).toBe('answered');
  });

  it('come whole where no stream is wanted', async () => {
    await serve([tool('c1', 'add', {})]);
    expect(await (await chat({ stream: false })).json()).toMatchObject({ done: true, message: { tool_calls: [{ id: 'c1' }] } });
  });

  it('can be any status and any bytes', async () => {
    await serve([status(429, { 'retry-after': '3' }, { error: 'slow' }), raw(['x', new Uint8Array([0xff])])]);
    const refused = await chat();
    expect([refused.status, refused.headers.get('retry-after'), await refused.json()]).toEqual([429, '3', { error: 'slow' }]);
    expect([...new Uint8Array(await (await chat()).arrayBuffer())]).toEqual([0x78, 0xff]);
  });

  it('are cut into chunks where the script says', async () => {
    await serve([raw(['abcdef'], { cutAt: [2, 3, 99] })]);
    const chunks: string[] = [];
    for await (const chunk of (await chat()).body!) chunks.push(Buffer.from(chunk).toString());
    expect(chunks.join('')).toBe('abcdef');
    // Node's own client may put frames together, never cut them elsewhere.
    const edges = chunks.map((_, index) => chunks.slice(0, index + 1).join('').length);
    expect([2, 3, 6]).toEqual(expect.arrayContaining(edges));
  });

  it('can break off or end early after any number of bytes', async () => {
    await serve([cut({ afterBytes: 5, how: 'eof', of: raw(['abcdefgh']) }), cut({ afterBytes: 5, of: raw(['abcdefgh']) }), cut({ afterBytes: 'nothing' })]);
    expect(await (await chat()).text()).toBe('abcde');
    await expect(chat().then((response) => response.text())).rejects.toThrow('terminated');
    await expect(chat()).rejects.toThrow('fetch failed');
    expect(await Promise.all(server.requests.map((request) => request.ended))).toEqual(['cut', 'cut', 'cut']);
  });

  it('can stall, which ends when the client goes', async () => {
    await serve([stall({ after: 3, of: raw(['abcdef']) })]);
    const controller = new AbortController();
    const reader = (await chat({}, controller.signal)).body!.getReader();
    expect(Buffer.from((await reader.read()).value!).toString()).toBe('abc');
    controller.abort();
    expect(await server.requests[0]!.ended).toBe('client_closed');
  });
});

describe('the record', () => {
  it('holds every request, and how many were there at once', async () => {
    await serve([stall({ after: 'nothing' }), stall({ after: 'nothing' }), text('c')]);
    const controller = new AbortController();
    const first = [chat({}, controller.signal), chat({ model: 'n' }, controller.signal)].map((pending) => pending.catch(() => undefined));
    const second = await server.received(2);
    expect(server.parallel).toEqual({ most: 2, now: 2 });
    controller.abort();
    await Promise.all([...first, server.requests[0]!.ended, second.ended]);
    await (await chat()).text();
    await server.requests[2]!.ended;
    expect(server.parallel).toEqual({ most: 2, now: 0 });
    expect(server.requests.map((request) => request.index)).toEqual([0, 1, 2]);
    server.assertUsedUp();
  });
});

describe('a strict script', () => {
  it('fails an unscripted call, and the test that made it', async () => {
    await serve([text('a')]);
    await (await chat()).text();
    expect((await chat()).status).toBe(500);
    expect(() => server.assertUsedUp()).toThrow('request 1 is beyond the script');
  });

  it('fails a test that does not use it up', async () => {
    await serve([text('a'), text('b')]);
    await (await chat()).text();
    expect(() => server.assertUsedUp()).toThrow('1 of 2 scripted replies were not asked for');
  });

  it('answers "done" beyond its end where it is told to', async () => {
    await serve([], { whenUsedUp: 'done' });
    expect((await lines(await chat())).map((line) => line.message.content).join('')).toBe('done');
    server.assertUsedUp();
  });

  it('refuses an invalid request, which uses nothing up', async () => {
    await serve([text('a')]);
    const refused = await chat({ truncate: true });
    expect([refused.status, await refused.json()]).toEqual([400, { error: 'strict: truncate is not false' }]);
    expect((await chat()).status).toBe(200);
    expect(server.requests.map((request) => request.refused)).toEqual([['truncate is not false'], []]);
    expect(() => server.assertUsedUp()).toThrow('request 0: truncate is not false');
  });

  it('refuses a body that is no JSON in good UTF-8', async () => {
    await serve([]);
    const bad = await fetch(`${server.url}/api/chat`, { method: 'POST', body: new Uint8Array([0x22, 0xff, 0x22]) });
    expect(bad.status).toBe(400);
    expect(server.violations).toHaveLength(1);
  });

  it('is lenient where it is told to be', async () => {
    await serve([text('a')], { strict: false });
    expect((await chat({ truncate: true, messages: [] })).status).toBe(200);
  });
});

describe('a script that is a function', () => {
  it('plays any number of conversations, each by its own tool results', async () => {
    await serve(toolTurns({ turns: 2, name: 'add', args: (turn) => ({ turn }), answer: () => 'three' }));
    const messages: Record<string, unknown>[] = [{ role: 'user', content: 'hi' }];
    for (let turn = 0; turn < 2; turn++) {
      const [call] = (await lines(await chat({ messages }))).flatMap((line) => (line.message.tool_calls ?? []) as { id: string; function: { name: string; arguments: unknown } }[]);
      expect(call).toMatchObject({ id: `call_${turn}`, function: { name: 'add', arguments: { turn } } });
      messages.push({ role: 'assistant', content: '', tool_calls: [call] }, { role: 'tool', content: '3', tool_name: 'add', tool_call_id: `call_${turn}` });
    }
    expect((await lines(await chat({ messages }))).map((line) => line.message.content).join('')).toBe('three');
    server.assertUsedUp();
  });

  it('is a violation when it throws', async () => {
    const script = (): ScriptedReply => { throw new Error('no idea'); };
    await serve(script);
    expect((await chat()).status).toBe(500);
    expect(server.violations).toEqual(['request 0: the script failed: Error: no idea']);
    expect(server.requests).toHaveLength(1);
  });
});

describe('the endpoints beside the chat', () => {
  it('tell of version and models', async () => {
    await serve([], { models: [{ name: 'tiny', context_length: 2048, capabilities: ['completion'] }] });
    const get = async (path: string): Promise<unknown> => (await fetch(`${server.url}${path}`)).json();
    expect(await get('/api/version')).toHaveProperty('version');
    expect(await get('/api/tags')).toMatchObject({ models: [{ name: 'tiny' }] });
    const show = (model: string) => fetch(`${server.url}/api/show`, { method: 'POST', body: JSON.stringify({ model }) });
    expect(await (await show('tiny')).json()).toMatchObject({ model_info: { 'scripted.context_length': 2048 }, capabilities: ['completion'] });
    expect((await show('huge')).status).toBe(404);
    expect((await fetch(`${server.url}/nowhere`)).status).toBe(404);
  });
});
