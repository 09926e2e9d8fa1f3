/** What Messages streams hold beside plain replies. Where bytes are cut: `src/stream-integrity.test.ts`. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { raw, startModelServer, type ModelServer } from '@treadle/testkit';
import type { ClosableModelGateway } from '../../gateway.ts';
import { callOnce, endOfText, frame, gatewayTo, named, requestOf, textSoFar, toolNamed } from '../../testing.ts';

let server: ModelServer;
let gateway: ClosableModelGateway;

beforeAll(async () => {
  server = await startModelServer({ dialect: 'anthropic', script: [] });
  gateway = gatewayTo(server.url);
});

afterAll(async () => {
  gateway.close();
  await server.close();
});

async function events(...parts: readonly (string | { readonly type: string; readonly [field: string]: unknown })[]) {
  server.add(raw(parts.map((part) => (typeof part === 'string' ? part : named(part)))));
  return (await callOnce(gateway, requestOf({ tools: [toolNamed('save')] }, 'anthropic'))).outcome;
}

const start = { type: 'message_start', message: { usage: { input_tokens: 10, cache_read_input_tokens: 30, cache_creation_input_tokens: 5, output_tokens: 1 } } };
const stop = { type: 'message_stop' };
const ending = (stop_reason: string, rest: object = {}) => ({ type: 'message_delta', delta: { stop_reason, ...rest }, usage: { output_tokens: 9 } });
const usage = { input_tokens: 45, output_tokens: 9, cached_tokens: 30, wasted_tokens: 0, cost_usd: 0 };

describe('the counts', () => {
  it('of the prompt hold what was read from the cache and written to it; those of the end replace those of the beginning', async () => {
    expect(await events(start, { type: 'content_block_start', index: 0, content_block: { type: 'text', text: 'ok' } }, ending('end_turn'), stop)).toMatchObject({ reply: { text: 'ok', usage } });
    const again = { ...ending('end_turn'), usage: { input_tokens: 10, cache_read_input_tokens: null, output_tokens: 9 } };
    expect(await events(start, { type: 'content_block_start', index: 0, content_block: { type: 'text', text: 'ok' } }, again, stop)).toMatchObject({ reply: { usage } });
  });

  it('of a reply that fails are told as far as they were known', async () => {
    expect(await events(start)).toMatchObject({ failure: { error_type: 'stream_interrupted', usage: { input_tokens: 45, output_tokens: 1 } } });
    expect(await events(start, { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } })).toMatchObject({ failure: { error_type: 'overloaded', usage: { input_tokens: 45 } } });
  });
});

describe('events and blocks', () => {
  it('of unknown kinds are passed over', async () => {
    expect(await events(
      start, { type: 'a_new_event', index: 0 }, { type: 'content_block_start', index: 0, content_block: { type: 'a_new_block', text: 'no' } },
      { type: 'content_block_delta', index: 0, delta: { type: 'a_new_delta', text: 'no' } }, { type: 'content_block_delta', index: 9, delta: { type: 'text_delta', text: 'no' } }, { type: 'content_block_stop', index: 0 },
      { type: 'content_block_start', index: 1, content_block: { type: 'text', text: '' } }, { type: 'content_block_delta', index: 1, delta: { type: 'text_delta', text: 'ok' } }, ending('end_turn'), stop,
    )).toMatchObject({ reply: { text: 'ok', calls: [], provider_data: null } });
  });

  it('are known by their data where a server leaves out the names', async () => {
    const lines = `${textSoFar('anthropic', 'ok')}${endOfText('anthropic')}`.replaceAll(/^event: .*\n/gm, '');
    expect(await events(lines)).toMatchObject({ reply: { text: 'ok' } });
    expect(await events(frame({ type: 'error', error: { type: 'api_error', message: 'x' } }))).toMatchObject({ failure: { error_type: 'server_error' } });
  });

  it('bring the input of a call in pieces, at once, or not at all', async () => {
    const call = (index: number, input: object, ...pieces: readonly string[]) => [
      { type: 'content_block_start', index, content_block: { type: 'tool_use', id: `t${index}`, name: 'save', input } },
      ...pieces.map((partial_json) => ({ type: 'content_block_delta', index, delta: { type: 'input_json_delta', partial_json } })), { type: 'content_block_stop', index },
    ];
    expect(await events(start, ...call(0, {}, '', '{"a"', ':1}'), ...call(1, { a: 2 }), ...call(2, {}), ending('tool_use'), stop)).toMatchObject({
      reply: { finish: 'tool_calls', calls: [{ provider_id: 't0', input: { a: 1 } }, { input: { a: 2 } }, { input: {}, problem: null }] },
    });
  });
});

describe('blocks of servers that imitate this wire', () => {
  const block = (index: number | undefined, content_block: object, ...deltas: readonly object[]) => [
    { type: 'content_block_start', index, content_block }, ...deltas.map((delta) => ({ type: 'content_block_delta', index, delta })), { type: 'content_block_stop', index },
  ];
  const call = (index: number | undefined, id: string, ...pieces: readonly unknown[]) => block(index, { type: 'tool_use', id, name: 'save', input: {} }, ...pieces.map((partial_json) => ({ type: 'input_json_delta', partial_json })));
  const calls = async (...parts: readonly { readonly type: string }[]) => (await events(start, ...parts, ending('tool_use'), stop)) as { reply?: { calls: readonly { provider_id: string; input: unknown }[]; text: string } };

  it.each([0, undefined])('C12: are all there where each has the index %s', async (index) => {
    expect(await calls(...block(index, { type: 'text', text: 'So' }), ...call(index, 'A', '{"p":', '"a"}'), ...call(index, 'B', '{"p":"b"}'))).toMatchObject({
      reply: { text: 'So', calls: [{ provider_id: 'A', input: { p: 'a' } }, { provider_id: 'B', input: { p: 'b' } }] },
    });
  });

  it('C18, C19: bring an input as an object, or again and again', async () => {
    expect((await calls(...call(0, 'A', { p: 1 }), ...call(1, 'B', '{"p"', '{"p":1}', '{"p":1}'), ...call(2, 'C', '{}', '{"p":1}'))).reply?.calls.map(({ input }) => input)).toEqual([{ p: 1 }, { p: 1 }, { p: 1 }]);
    expect(await calls(...block(0, { type: 'tool_use', id: 'A', name: 'save', input: { p: 1 } }, { type: 'input_json_delta', partial_json: '{}' }))).toMatchObject({ reply: { calls: [{ input: { p: 1 } }] } });
  });

  it('come as a whole message where the server does not stream; without its end it is none', async () => {
    const message = { type: 'message', role: 'assistant', model: 'm', content: [{ type: 'text', text: 'So' }, { type: 'tool_use', id: 'A', name: 'save', input: { p: 1 } }], stop_reason: 'tool_use', usage: { input_tokens: 3, output_tokens: 4 } };
    expect(await events(JSON.stringify(message))).toMatchObject({ reply: { text: 'So', finish: 'tool_calls', calls: [{ provider_id: 'A', input: { p: 1 } }], usage: { input_tokens: 3, output_tokens: 4 } } });
    expect(await events(JSON.stringify({ ...message, stop_reason: null }))).toMatchObject({ failure: { error_type: 'stream_interrupted' } });
  });
});

describe('the end', () => {
  it('that refuses has blocked the content', async () => {
    expect(await events(start, ending('refusal', { stop_details: { type: 'refusal', category: 'cyber', explanation: null } }), stop)).toMatchObject({
      failure: { error_type: 'content_blocked', detail: 'the model refused (cyber)', usage },
    });
  });

  it('of the window is an overflow, not a reply', async () => {
    expect(await events(textSoFar('anthropic', 'Half'), ending('model_context_window_exceeded'), stop)).toMatchObject({ failure: { error_type: 'context_overflow', partial_text: 'Half' } });
  });

  it('of a kind that is not known is kept as it was said', async () => {
    expect(await events(textSoFar('anthropic', 'ok'), ending('pause_turn'), stop)).toMatchObject({ reply: { finish: 'stop', finish_raw: 'pause_turn' } });
  });

  it('C28: is seen in message_stop alone', async () => {
    expect(await events(textSoFar('anthropic', 'ok'), ending('end_turn'))).toMatchObject({ failure: { error_type: 'stream_interrupted', partial_text: 'ok' } });
  });
});
