/** What servers of this wire really stream. Where bytes are cut: `src/stream-integrity.test.ts`. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { raw, startModelServer, status, type ModelServer, type ScriptedReply } from '@treadle/testkit';
import type { ClosableModelGateway } from '../../gateway.ts';
import { callOnce, frame, gatewayTo, requestOf, toolNamed } from '../../testing.ts';

let server: ModelServer;
let gateway: ClosableModelGateway;

beforeAll(async () => {
  server = await startModelServer({ dialect: 'openai', script: [] });
  gateway = gatewayTo(`${server.url}/v1`);
});

afterAll(async () => {
  gateway.close();
  await server.close();
});

const request = requestOf({ tools: [toolNamed('save')] }, 'openai');

async function outcomeOf(scripted: ScriptedReply) {
  server.add(scripted);
  return (await callOnce(gateway, request)).outcome;
}

const done = 'data: [DONE]\n\n';
const delta = (part: object, finish: unknown = null): string => frame({ choices: [{ index: 0, delta: part, finish_reason: finish }] });
const chunks = (...parts: readonly string[]) => outcomeOf(raw([...parts, done]));
const counts = { prompt_tokens: 40, completion_tokens: 9, prompt_tokens_details: { cached_tokens: 30 } };
const usage = { input_tokens: 40, output_tokens: 9, cached_tokens: 30, wasted_tokens: 0, cost_usd: 0 };

describe('the words of servers that imitate this wire', () => {
  it.each(['max_tokens', 'MAX_TOKENS', 'model_length', 'length'])('C28: %s is a reply that was cut, and no answer', async (finish) => {
    expect(await chunks(delta({ content: 'The result is 4' }), delta({}, finish))).toMatchObject({ reply: { finish: 'length', finish_raw: finish } });
  });

  it.each(['SAFETY', 'RECITATION', 'content_filter'])('%s is a filter', async (finish) => {
    expect(await chunks(delta({}, finish))).toMatchObject({ failure: { error_type: 'content_blocked' } });
  });

  it.each([null, '', false])('an error that is %j is none', async (error) => {
    expect(await chunks(frame({ choices: [{ index: 0, delta: { content: 'ok' } }], error }), delta({}, 'stop'))).toMatchObject({ reply: { text: 'ok' } });
  });

  it('C19: a whole message behind its deltas is no second one', async () => {
    expect(await chunks(delta({ content: 'ok' }), frame({ choices: [{ index: 0, message: { content: 'ok' }, finish_reason: 'stop' }] }))).toMatchObject({ reply: { text: 'ok' } });
    expect(await chunks(delta({ role: 'assistant' }), frame({ choices: [{ index: 0, message: { content: 'ok' }, finish_reason: 'stop' }] }))).toMatchObject({ reply: { text: 'ok' } });
  });

  it('C28: "null" is no end', async () => {
    expect(await outcomeOf(raw([delta({ content: 'The result is 4' }, 'null')]))).toMatchObject({ failure: { error_type: 'stream_interrupted' } });
  });

  it('text comes in parts, or as one part', async () => {
    expect(await chunks(delta({ content: ['a', { type: 'text', text: 'b' }] }), delta({ content: { type: 'text', text: 'c' } }), delta({}, 'stop'))).toMatchObject({ reply: { text: 'abc' } });
  });

  it('a call stands without its list, and without its function', async () => {
    const call = { id: 'A', name: ' save ', arguments: { p: 1 } };
    for (const tool_calls of [call, [call], [{ id: 'A', function: { name: 'save', arguments: '{"p":1}' } }]]) {
      expect(await chunks(delta({ tool_calls }), delta({}, 'stop'))).toMatchObject({ reply: { finish: 'tool_calls', calls: [{ provider_id: 'A', name: 'save', input: { p: 1 } }] } });
    }
  });
});

describe('chunks', () => {
  it('C31: without choices bring the counts, once', async () => {
    expect(await chunks(delta({ content: 'ok' }), delta({}, 'stop'), frame({ choices: [], usage: counts }), frame({ usage: counts }))).toMatchObject({ reply: { text: 'ok', usage } });
    expect(await chunks(delta({ content: 'ok' }), frame({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }], usage: counts }), frame({ choices: [], usage: null }))).toMatchObject({ reply: { usage } });
    expect(await chunks(frame({ id: 'x' }), frame({ choices: null }), delta({ content: 'ok' }), delta({}, 'stop'))).toMatchObject({ reply: { text: 'ok' } });
  });

  it('may be nothing at all', async () => {
    expect(await chunks(': hi\n\n', 'data:\n\n', 'data: \n\n', 'retry: 3\n\n', 'event: ping\n\n', delta({ content: 'ok' }), 'data:\n\n', delta({}, 'stop'))).toMatchObject({ reply: { text: 'ok' } });
  });

  it('count cached tokens under DeepSeek\'s name, too', async () => {
    expect(await chunks(delta({ content: 'ok' }, 'stop'), frame({ choices: [], usage: { prompt_tokens: 40, completion_tokens: 9, prompt_cache_hit_tokens: 30 } }))).toMatchObject({ reply: { usage } });
  });

  it('count thinking as output, whether it is among the reply\'s tokens or beside them', async () => {
    const thought = (completion_tokens: number, total_tokens: number) => chunks(delta({ content: 'ok' }, 'stop'), frame({
      choices: [], usage: { prompt_tokens: 32, completion_tokens, total_tokens, completion_tokens_details: { reasoning_tokens: 94 } } }));
    expect(await thought(103, 135)).toMatchObject({ reply: { usage: { input_tokens: 32, output_tokens: 103 } } });
    expect(await thought(9, 135)).toMatchObject({ reply: { usage: { input_tokens: 32, output_tokens: 103 } } });
  });

  it.each([-5, 1.5, '12', null, 2 ** 53 - 1, 1e300])('count %s as nothing', async (prompt_tokens) => {
    expect(await chunks(delta({ content: 'ok' }, 'stop'), frame({ choices: [], usage: { prompt_tokens, completion_tokens: 3 } }))).toMatchObject({ reply: { usage: { input_tokens: 0, output_tokens: 3 } } });
  });

  it('count no more tokens of a cache than the prompt has', async () => {
    expect(await chunks(delta({ content: 'ok' }, 'stop'), frame({ choices: [], usage: { prompt_tokens: 40, completion_tokens: 9, prompt_cache_hit_tokens: 99 } }))).toMatchObject({ reply: { usage: { input_tokens: 40, cached_tokens: 40 } } });
  });

  it('C19: may say twice, or as empty text, how the reply ends', async () => {
    expect(await chunks(delta({ content: 'o' }, ''), delta({ content: 'k' }), delta({}, 'stop'), delta({}, 'stop'))).toMatchObject({ reply: { text: 'ok', finish_raw: 'stop' } });
  });

  it('of another choice are another reply, and not read', async () => {
    expect(await chunks(delta({ content: 'ok' }), frame({ choices: [{ index: 1, delta: { content: 'no' }, finish_reason: 'stop' }] }), delta({}, 'stop'))).toMatchObject({ reply: { text: 'ok' } });
  });

  it('bring thinking under either name, or both, and as parts', async () => {
    for (const thought of [{ reasoning: 'hm' }, { reasoning_content: 'hm' }, { reasoning: 'hm', reasoning_content: 'hm' }, { reasoning: 'hm', reasoning_content: null }]) {
      expect(await chunks(delta({ ...thought, content: null }), delta({ content: 'ok' }), delta({}, 'stop'))).toMatchObject({ reply: { text: 'ok', thinking: 'hm' } });
    }
    const parts = [{ type: 'thinking', thinking: [{ type: 'text', text: 'hm' }] }, { type: 'text', text: 'ok' }];
    expect(await chunks(delta({ content: parts }), delta({}, 'stop'))).toMatchObject({ reply: { text: 'ok', thinking: 'hm' } });
  });

  it('bring a call in the old form', async () => {
    expect(await chunks(delta({ function_call: { name: 'save', arguments: '{"a"' } }), delta({ function_call: { arguments: ':1}' } }), delta({}, 'function_call'))).toMatchObject({
      reply: { finish: 'tool_calls', finish_raw: 'function_call', calls: [{ provider_id: null, name: 'save', input: { a: 1 }, problem: null }] },
    });
  });

  it('C12, C18, C19: bring calls whole, twice or as objects', async () => {
    const call = (id: string, args: unknown) => delta({ tool_calls: [{ index: 0, id, function: { name: 'save', arguments: args } }] });
    expect(await chunks(call('A', '{"p":"a"}'), call('A', '{"p":"a"}'), call('B', { p: 'b' }), delta({}, 'stop'))).toMatchObject({
      reply: { finish: 'tool_calls', finish_raw: 'stop', calls: [{ provider_id: 'A', input: { p: 'a' } }, { provider_id: 'B', input: { p: 'b' } }] },
    });
  });
});

describe('a server that does not stream', () => {
  it('is read all the same', async () => {
    const whole = { object: 'chat.completion', choices: [{ index: 0, message: { role: 'assistant', content: 'ok', tool_calls: [{ id: 'A', function: { name: 'save', arguments: '{}' } }] }, finish_reason: 'tool_calls' }], usage: counts };
    for (const body of [JSON.stringify(whole), JSON.stringify(whole, null, 2)]) {
      expect(await outcomeOf(status(200, {}, body))).toMatchObject({ reply: { text: 'ok', calls: [{ provider_id: 'A' }], usage } });
    }
  });

  it('says in its body what went wrong', async () => {
    expect(await outcomeOf(status(200, {}, { error: { code: 429, message: 'Rate limit exceeded, try again in 5s' } }))).toMatchObject({ failure: { error_type: 'rate_limited', retry_after_s: 5 } });
    expect(await outcomeOf(status(200, {}, { object: 'error', message: "This model's maximum context length is 10 tokens.", code: 400 }))).toMatchObject({ failure: { error_type: 'context_overflow' } });
  });
});

describe('an error in the stream', () => {
  const half = [delta({ content: 'Let me' }), delta({ tool_calls: [{ index: 0, id: 'A', function: { name: 'save', arguments: '{"id":' } }] })];

  it.each([
    ['alone', frame({ error: { message: 'x', type: 'server_error' } }), 'server_error'],
    ['as text', frame({ error: 'server busy' }), 'overloaded'],
    ['with its choices', frame({ id: 'gen', choices: [{ index: 0, delta: { content: '' }, finish_reason: 'error' }], error: { code: 502, message: 'Provider disconnected' } }), 'server_error'],
    ['flat', frame({ object: 'error', message: 'overloaded', code: 503 }), 'overloaded'],
    ['typed', frame({ type: 'error', error: { code: 'context_length_exceeded', message: 'x' } }), 'context_overflow'],
    ['under its name', 'event: error\ndata: {"message":"server busy"}\n\n', 'overloaded'],
    ['under its name, in words', 'event: error\ndata: server busy\n\n', 'overloaded'],
  ])('C27: %s ends the reply, and nothing of it is kept', async (_, error, reason) => {
    expect(await chunks(...half, error)).toMatchObject({ type: 'failed', failure: { error_type: reason, partial_text: 'Let me' } });
  });

  it('that only says so is one, too', async () => {
    expect(await chunks(...half, delta({}, 'error'))).toMatchObject({ failure: { error_type: 'server_error' } });
  });

  it('behind the end takes nothing from the reply', async () => {
    expect(await chunks(delta({ content: 'ok' }), delta({}, 'stop'), frame({ error: { message: 'late' } }))).toMatchObject({ reply: { text: 'ok' } });
  });
});

it('C28: an end without a reason is none, however good it looks', async () => {
  expect(await outcomeOf(raw([delta({ content: 'The result is 4' })]))).toMatchObject({ failure: { error_type: 'stream_interrupted', partial_text: 'The result is 4' } });
  expect(await chunks(delta({ content: 'The result is 4' }))).toMatchObject({ failure: { error_type: 'stream_interrupted' } });
});

it('a model that refuses in words of its own has blocked the content', async () => {
  expect(await chunks(delta({ refusal: 'I cannot ' }), delta({ refusal: 'do that.' }), delta({}, 'stop'))).toMatchObject({ failure: { error_type: 'content_blocked', detail: 'the model refused: I cannot do that.' } });
});

it('what a stopped reply has cost is told', async () => {
  expect(await chunks(delta({ content: 'x' }), delta({}, 'content_filter'), frame({ choices: [], usage: counts }))).toMatchObject({ failure: { error_type: 'content_blocked', usage } });
});
