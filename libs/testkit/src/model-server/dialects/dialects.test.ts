import { afterEach, describe, expect, it } from 'vitest';
import { cut, raw, refusal, reply, stall, startModelServer, status, text, tool, toolTurns, type DialectName, type ModelServer, type ModelServerOptions } from '../index.ts';

let server: ModelServer;

async function serve(script: NonNullable<ModelServerOptions['script']>): Promise<void> {
  server = await startModelServer({ script });
}

afterEach(() => server.close());

const paths: Readonly<Record<DialectName, string>> = { ollama: '/api/chat', openai: '/v1/chat/completions', anthropic: '/v1/messages' };
const needs: Readonly<Record<DialectName, object>> = {
  ollama: { truncate: false, options: { num_ctx: 4096 } }, openai: { stream_options: { include_usage: true } }, anthropic: { max_tokens: 100 },
};

function ask(dialect: DialectName, over: object = {}, signal?: AbortSignal): Promise<Response> {
  const body = { model: 'm', messages: [{ role: 'user', content: 'hi' }], stream: true, ...needs[dialect], ...over };
  return fetch(`${server.url}${paths[dialect]}`, { method: 'POST', body: JSON.stringify(body), ...(signal === undefined ? {} : { signal }) });
}

const ofEverything = reply({
  thinking: 'hm, 🌍', text: 'a b é', calls: [{ id: 'c1', name: 'add', args: { x: 1, y: '현재' } }, { id: 'c2', name: 'sub', args: {} }], usage: { prompt: 20, output: 7, cached: 5 },
});

interface CallPart { readonly index: number; readonly id?: string; readonly function: { readonly name?: string; readonly arguments?: string } }
interface Delta { readonly content?: string; readonly reasoning_content?: string; readonly tool_calls?: readonly CallPart[] }
interface Chunk { readonly choices: readonly { readonly delta: Delta; readonly finish_reason: string | null }[] }
interface Event { readonly type: string; readonly index?: number; readonly delta?: Readonly<Record<string, unknown>>; readonly content_block?: { readonly type: string } }

function dataOf(body: string): string[] {
  return body.split('\n\n').flatMap((block) => /^data: (.*)$/m.exec(block)?.[1] ?? []);
}

function chunksOf(body: string): Chunk[] {
  const datas = dataOf(body);
  expect(datas.at(-1)).toBe('[DONE]');
  return datas.slice(0, -1).map((data) => JSON.parse(data) as Chunk);
}

function eventsOf(body: string): Event[] {
  const events = dataOf(body).map((data) => JSON.parse(data) as Event);
  expect(body.match(/(?<=^event: ).*$/gm)).toEqual(events.map(({ type }) => type));
  return events;
}

const callPartsOf = (chunks: readonly Chunk[]): readonly CallPart[] => chunks.flatMap(({ choices }) => choices[0]?.delta.tool_calls ?? []);
const grown = (events: readonly Event[], index: number, field: string): string => events.filter((event) => event.index === index).map(({ delta }) => String(delta?.[field] ?? '')).join('');

describe('a message in pieces', () => {
  it('is a list of chunks with deltas, as chat completions send it', async () => {
    await serve([ofEverything]);
    const response = await ask('openai');
    expect(response.headers.get('content-type')).toMatch(/^text\/event-stream/);
    const chunks = chunksOf(await response.text());
    const deltas = chunks.slice(0, -1).map(({ choices }) => choices[0]!.delta);
    expect(deltas[0]).toEqual({ role: 'assistant', content: '' });
    expect(deltas.map((delta) => delta.reasoning_content ?? '').join('')).toBe('hm, 🌍');
    expect(deltas.map((delta) => delta.content ?? '').join('')).toBe('a b é');
    const parts = callPartsOf(chunks);
    expect(parts.filter((part) => part.id !== undefined).map((part) => [part.index, part.id, part.function.name])).toEqual([[0, 'c1', 'add'], [1, 'c2', 'sub']]);
    const args = (index: number): unknown => JSON.parse(parts.filter((part) => part.index === index).map((part) => part.function.arguments).join(''));
    expect([args(0), args(1)]).toEqual([{ x: 1, y: '현재' }, {}]);
    expect(parts.filter((part) => part.index === 0).length).toBeGreaterThan(2);
    expect(chunks.map(({ choices }) => choices[0]?.finish_reason)).toEqual([...deltas.slice(1).map(() => null), 'tool_calls', undefined]);
    expect(chunks.at(-1)).toMatchObject({ choices: [], usage: { prompt_tokens: 20, completion_tokens: 7, prompt_tokens_details: { cached_tokens: 5 } } });
  });

  it('has no chunk of usage where none was asked for', async () => {
    await serve([ofEverything]);
    expect(await (await ask('openai', { stream_options: undefined })).text()).not.toContain('usage');
  });

  it('is a list of blocks that grow, as messages are sent', async () => {
    await serve([ofEverything]);
    const events = eventsOf(await (await ask('anthropic')).text());
    const types = events.map(({ type }) => type);
    expect([types[0], types.at(-2), types.at(-1)]).toEqual(['message_start', 'message_delta', 'message_stop']);
    expect(types.filter((type) => type === 'ping')).toHaveLength(1);
    expect(events[0]).toMatchObject({ message: { usage: { input_tokens: 15, cache_read_input_tokens: 5 }, content: [] } });
    expect(events.flatMap(({ index, content_block: block }) => block === undefined ? [] : [[index, block.type]])).toEqual([[0, 'thinking'], [1, 'text'], [2, 'tool_use'], [3, 'tool_use']]);
    expect([grown(events, 0, 'thinking'), grown(events, 1, 'text')]).toEqual(['hm, 🌍', 'a b é']);
    expect([2, 3].map((index) => JSON.parse(grown(events, index, 'partial_json')) as unknown)).toEqual([{ x: 1, y: '현재' }, {}]);
    expect(grown(events, 0, 'signature')).not.toBe('');
    expect(events.at(-2)).toMatchObject({ delta: { stop_reason: 'tool_use' }, usage: { output_tokens: 7 } });
  });

  it('says in each wire\'s words why it ends', async () => {
    await serve([reply({ text: 'x', done_reason: 'length' }), reply({ text: 'x', done_reason: 'length' }), reply({ text: 'x' }), reply({ text: 'x' })]);
    expect(await (await ask('openai')).text()).toContain('"finish_reason":"length"');
    expect(await (await ask('anthropic')).text()).toContain('"stop_reason":"max_tokens"');
    expect(await (await ask('openai')).text()).toContain('"finish_reason":"stop"');
    expect(await (await ask('anthropic')).text()).toContain('"stop_reason":"end_turn"');
  });

  it('holds arguments that are no JSON as they are', async () => {
    await serve([tool('c', 'add', '{"x":'), tool('c', 'add', '{"x":')]);
    expect(callPartsOf(chunksOf(await (await ask('openai')).text())).map((part) => part.function.arguments).join('')).toBe('{"x":');
    expect(grown(eventsOf(await (await ask('anthropic')).text()), 0, 'partial_json')).toBe('{"x":');
  });

  it.each<DialectName>(['ollama', 'openai', 'anthropic'])('comes with other line ends, and cut at every byte: %s', async (dialect) => {
    await serve([ofEverything, { ...ofEverything, delivery: { lineEnd: '\r\n', cutAt: 'every_byte' } }]);
    const [plain, other] = [await (await ask(dialect)).text(), await (await ask(dialect)).text()];
    expect(other).toContain('\r\n');
    expect(other.replaceAll('\r\n', '\n').replaceAll(/(chatcmpl-|msg_)1/g, '$10')).toBe(plain);
  });
});

describe('a message in one piece', () => {
  it('is what the wire answers without a stream', async () => {
    await serve([ofEverything, ofEverything]);
    const openai = await (await ask('openai', { stream: false, stream_options: undefined })).json();
    expect(openai).toMatchObject({
      object: 'chat.completion', usage: { total_tokens: 27 },
      choices: [{ finish_reason: 'tool_calls', message: { content: 'a b é', reasoning_content: 'hm, 🌍', tool_calls: [{ id: 'c1', type: 'function', function: { name: 'add', arguments: '{"x":1,"y":"현재"}' } }, {}] } }],
    });
    const anthropic = await (await ask('anthropic', { stream: undefined })).json();
    expect(anthropic).toMatchObject({ type: 'message', stop_reason: 'tool_use', content: [{ type: 'thinking' }, { type: 'text', text: 'a b é' }, { type: 'tool_use', id: 'c1', input: { x: 1 } }, { type: 'tool_use', input: {} }] });
  });
});

describe('an error', () => {
  it.each<[DialectName, unknown]>([
    ['ollama', { error: 'too many' }],
    ['openai', { error: { message: 'too many', type: 'requests', param: null, code: 'rate_limit_exceeded' } }],
    ['anthropic', { type: 'error', error: { type: 'rate_limit_error', message: 'too many' }, request_id: 'req_scripted' }],
  ])('is worded as %s does', async (dialect, body) => {
    await serve([refusal(429, 'too many', { 'retry-after': '3' })]);
    const response = await ask(dialect);
    expect([response.status, response.headers.get('retry-after'), await response.json()]).toEqual([429, '3', body]);
  });

  it.each<[DialectName, string]>([['ollama', 'error'], ['openai', 'error.message'], ['anthropic', 'error.message']])('of the strict validator is, too: %s', async (dialect, path) => {
    await serve([]);
    const response = await ask(dialect, { messages: [] });
    expect(response.status).toBe(400);
    expect(await response.json()).toHaveProperty(path, expect.stringContaining('strict: '));
    expect(server.violations.length).toBeGreaterThan(0);
  });
});

describe.each<DialectName>(['ollama', 'openai', 'anthropic'])('on %s', (dialect) => {
  it.each([true, false])('a reply is cut after any byte, by an end or a reset, and stalls (streamed: %s)', async (stream) => {
    const over = stream ? {} : { stream: false, stream_options: undefined };
    await serve([ofEverything]);
    const whole = Buffer.from(await (await ask(dialect, over)).arrayBuffer());
    await server.close();
    await serve([
      ...[0, 1, 7, whole.length - 1, whole.length].flatMap((afterBytes) => [cut({ afterBytes, how: 'eof', of: ofEverything }), cut({ afterBytes, of: ofEverything })]),
      stall({ after: 7, of: ofEverything }),
    ]);
    // The ids of a reply count its requests, in one digit.
    const same = (bytes: Uint8Array): string => Buffer.from(bytes).toString('latin1').replaceAll(/(chatcmpl-|msg_)\d/g, '$10');
    for (const afterBytes of [0, 1, 7, whole.length - 1, whole.length]) {
      const ended = new Uint8Array(await (await ask(dialect, over)).arrayBuffer());
      expect(same(ended)).toBe(same(whole).slice(0, afterBytes));
      await expect(ask(dialect, over).then((response) => response.arrayBuffer())).rejects.toThrow();
    }
    const caller = new AbortController();
    const reader = (await ask(dialect, over, caller.signal)).body!.getReader();
    expect((await reader.read()).value).toHaveLength(7);
    caller.abort();
    expect(await server.requests.at(-1)!.ended).toBe('client_closed');
    server.assertUsedUp();
  });

  it('silences, statuses and bytes are what the script says', async () => {
    await serve([text('slow', { delayMs: 30, chunkDelayMs: 1 }), status(418, { 'x-own': '1' }, { mine: true }), raw(['x', new Uint8Array([0xff])])]);
    expect(await (await ask(dialect)).text()).toContain('lo');
    const own = await ask(dialect);
    expect([own.status, own.headers.get('x-own'), await own.json()]).toEqual([418, '1', { mine: true }]);
    expect([...new Uint8Array(await (await ask(dialect)).arrayBuffer())]).toEqual([0x78, 0xff]);
  });

  it('a script without end knows how far a conversation is', async () => {
    await serve(toolTurns({ turns: 1, name: 'add', answer: () => 'three' }));
    const conversations: Readonly<Record<DialectName, readonly object[]>> = {
      ollama: [{ role: 'assistant', content: '', tool_calls: [{ id: 'call_0', function: { name: 'add', arguments: {} } }] }, { role: 'tool', content: '3', tool_name: 'add', tool_call_id: 'call_0' }],
      openai: [{ role: 'assistant', content: null, tool_calls: [{ id: 'call_0', type: 'function', function: { name: 'add', arguments: '{}' } }] }, { role: 'tool', content: '3', tool_call_id: 'call_0' }],
      anthropic: [{ role: 'assistant', content: [{ type: 'tool_use', id: 'call_0', name: 'add', input: {} }] }, { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'call_0', content: '3' }] }],
    };
    const add = { description: 'd', name: 'add' };
    const tools = dialect === 'anthropic' ? [{ ...add, input_schema: { type: 'object' } }] : [{ type: 'function', function: { ...add, parameters: { type: 'object' } } }];
    expect(await (await ask(dialect, { tools })).text()).toContain('call_0');
    expect(await (await ask(dialect, { tools, messages: [{ role: 'user', content: 'hi' }, ...conversations[dialect]] })).text()).toContain('th');
    server.assertUsedUp();
  });
});

it('a body of more than 32 MB is too large for Anthropic', async () => {
  await serve([]);
  const refused = await ask('anthropic', { messages: [{ role: 'user', content: 'x'.repeat(33 * 1024 * 1024) }] });
  expect([refused.status, await refused.json()]).toMatchObject([413, { error: { type: 'request_too_large' } }]);
});

describe('one server for all wires', () => {
  it('has one script and one record', async () => {
    await serve([raw(['a']), raw(['b']), raw(['c'])]);
    const said: string[] = [];
    for (const dialect of ['openai', 'ollama', 'anthropic'] as const) said.push(await (await ask(dialect)).text());
    expect(said).toEqual(['a', 'b', 'c']);
    expect(server.requests.map((request) => request.dialect)).toEqual(['openai', 'ollama', 'anthropic']);
    server.assertUsedUp();
  });

  it('tells its models to each in its own way', async () => {
    await serve([]);
    const models = async (headers: Record<string, string>): Promise<unknown> => (await fetch(`${server.url}/v1/models`, { headers })).json();
    expect(await models({})).toMatchObject({ object: 'list', data: [{ id: 'scripted:latest' }] });
    expect(await models({ 'anthropic-version': '2026-10-21' })).toMatchObject({ has_more: false, data: [{ type: 'model', id: 'scripted:latest' }] });
  });

  it('speaks no other wires than it is told to', async () => {
    server = await startModelServer({ dialect: ['openai', 'anthropic'], script: [] });
    expect((await ask('ollama')).status).toBe(404);
  });
});
