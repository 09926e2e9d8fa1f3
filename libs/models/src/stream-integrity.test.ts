/**
 * P1 and P4 of `provider.ts` where the bytes of a reply are cut, for every wire: at each offset, with every line end, by a chunk's
 * boundary, by a reset and by an end in good order.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { cut, raw, reply, startModelServer, type ModelServer, type ScriptedReply } from '@treadle/testkit';
import { createModelGateway, type ClosableModelGateway } from './gateway.ts';
import { baseUrlOf, callOnce, connectionTo, endOfText, frame, gatewayTo, moreText, named, reasonOf, requestOf, textSoFar, toolNamed, wires, type Called, type Wire } from './testing.ts';

const said = { text: '현재 🌍 ok', thinking: 'hm, é', args: { path: 'é/🌍.txt' } };

/** One reply with text, thinking and a call, in as few bytes as each wire allows: every one of them is a case. */
const bodies: Readonly<Record<Wire, string>> = {
  ollama: [
    { message: { role: 'assistant', thinking: said.thinking }, done: false }, { message: { role: 'assistant', content: '현재 ' }, done: false },
    { message: { role: 'assistant', content: '🌍 ok', tool_calls: [{ id: 'c', function: { index: 0, name: 'files__save', arguments: said.args } }] }, done: false },
    { message: { role: 'assistant', content: '' }, done: true, done_reason: 'stop', prompt_eval_count: 40, eval_count: 9 },
  ].map((line) => `${JSON.stringify(line)}\n`).join(''),
  openai: [
    ': keep-alive\n\n',
    ...[{ reasoning_content: said.thinking }, { content: '현재 ' }, { content: '🌍 ok' }, { tool_calls: [{ index: 0, id: 'c', function: { name: 'files__save', arguments: '{"path":' } }] }, { tool_calls: [{ index: 0, function: { arguments: '"é/🌍.txt"}' } }] }]
      .map((delta) => frame({ choices: [{ delta }] })),
    frame({ choices: [{ delta: {}, finish_reason: 'tool_calls' }] }), frame({ choices: [], usage: { prompt_tokens: 40, completion_tokens: 9 } }), 'data: [DONE]\n\n',
  ].join(''),
  anthropic: [
    { type: 'message_start', message: { usage: { input_tokens: 40 } } },
    { type: 'content_block_start', index: 0, content_block: { type: 'thinking' } }, { type: 'content_block_delta', index: 0, delta: { type: 'thinking_delta', thinking: said.thinking } },
    { type: 'content_block_start', index: 1, content_block: { type: 'text' } }, { type: 'content_block_delta', index: 1, delta: { type: 'text_delta', text: '현재 ' } },
    { type: 'content_block_delta', index: 1, delta: { type: 'text_delta', text: '🌍 ok' } }, { type: 'content_block_stop', index: 1 },
    { type: 'content_block_start', index: 2, content_block: { type: 'tool_use', id: 'c', name: 'files__save', input: {} } }, { type: 'content_block_delta', index: 2, delta: { type: 'input_json_delta', partial_json: JSON.stringify(said.args) } },
    { type: 'message_delta', delta: { stop_reason: 'tool_use' }, usage: { output_tokens: 9 } }, { type: 'message_stop' },
  ].map(named).join(''),
};

/** Where its terminal marker ends; behind it nothing of the reply can be lost. */
const marks: Readonly<Record<Wire, string>> = { ollama: '"done":true', openai: '"finish_reason":"tool_calls"', anthropic: '{"type":"message_stop"}' };

describe.each(wires)('%s', (wire) => {
  let server: ModelServer;
  let gateway: ClosableModelGateway;
  const request = requestOf({ tools: [toolNamed('files/save')] }, wire);
  const body = Buffer.from(bodies[wire]);

  beforeAll(async () => {
    server = await startModelServer({ dialect: wire, script: [] });
    gateway = gatewayTo(baseUrlOf(wire, server.url));
  });

  afterAll(async () => {
    gateway.close();
    await server.close();
  });

  async function ask(scripted: ScriptedReply): Promise<Called> {
    server.add(scripted);
    return callOnce(gateway, request);
  }

  const whole = async (): Promise<Called['outcome']> => {
    const { outcome } = await ask(raw([body]));
    expect(outcome).toMatchObject({
      type: 'replied', reply: { text: said.text, thinking: said.thinking, finish: 'tool_calls', calls: [{ provider_id: 'c', name: 'files__save', input: said.args, problem: null }], usage: { input_tokens: 40, output_tokens: 9 } },
    });
    return outcome;
  };

  it.each(wire === 'ollama' ? ['\n', '\r\n'] : ['\n', '\r\n', '\r'])('C43: where chunks are cut makes no difference (line ends %j)', async (lineEnd) => {
    const right = await whole();
    const bytes = Buffer.from(body.toString().replaceAll('\n', lineEnd));
    for (let offset = 1; offset < bytes.length; offset++) {
      const { outcome, increments } = await ask(raw([bytes.subarray(0, offset), bytes.subarray(offset)]));
      expect(outcome, `cut at ${offset}`).toEqual(right);
      expect(increments.join('')).toBe(said.text);
    }
    expect((await ask(raw([bytes], { cutAt: 'every_byte' }))).outcome).toEqual(right);
  });

  it('what the server really sends, a byte at a time, is what it sends at once', async () => {
    const message = reply({ ...said, calls: [{ id: 'c', name: 'files__save', args: said.args }], usage: { prompt: 40, output: 9 } });
    const { outcome: right } = await ask(message);
    expect(reasonOf(right)).toBe('replied');
    for (const lineEnd of ['\n', '\r\n'] as const) expect((await ask({ ...message, delivery: { cutAt: 'every_byte', lineEnd } })).outcome).toEqual(right);
  });

  it.each(['reset', 'eof'] as const)('C27, C28: a reply that is cut is never taken for a whole one, at any byte (%s)', async (how) => {
    const right = await whole();
    const mark = body.indexOf(marks[wire]) + marks[wire].length;
    for (let afterBytes = 0; afterBytes < body.length; afterBytes++) {
      const { outcome, increments } = await ask(cut({ afterBytes, how, of: raw([body]) }));
      const shown = increments.join('');
      expect(said.text.startsWith(shown), `${how} at ${afterBytes}`).toBe(true);
      if (outcome.type === 'replied') {
        expect(afterBytes, `${how} at ${afterBytes}`).toBeGreaterThanOrEqual(mark);
        // What it cost may be lost behind the mark, nothing else.
        expect({ ...outcome.reply, usage: null }).toEqual({ ...(right as typeof outcome).reply, usage: null });
        continue;
      }
      expect(outcome.failure.partial_text).toBe(shown);
      expect(['stream_interrupted', 'connect_failed']).toContain(reasonOf(outcome));
      if (how === 'eof') expect(afterBytes, `${how} at ${afterBytes}`).toBeLessThan(body.length - 1);
    }
  });

  it('is interrupted, not refused, once the status line has come', async () => {
    expect(reasonOf((await ask(cut({ afterBytes: 30 }))).outcome)).toBe('stream_interrupted');
    expect(reasonOf((await ask(cut({ afterBytes: 'headers', how: 'eof' }))).outcome)).toBe('stream_interrupted');
  });

  it('shows whole characters only, also where an increment ends inside one', async () => {
    const [first, ...more] = [String.raw`a\ud83c`, String.raw`\udf0d b`, String.raw`\udf0d`, String.raw`\ud83c`];
    const escaped = (text: string): string => text.replaceAll(String.raw`\\`, '\\');
    const lines = [textSoFar(wire, first!), ...more.map((text) => moreText(wire, text)), endOfText(wire)].map(escaped);
    const { outcome, increments } = await ask(raw(lines));
    expect(outcome).toMatchObject({ reply: { text: 'a🌍 b��' } });
    expect(increments.every((increment) => increment.isWellFormed())).toBe(true);
  });

  it('replaces bytes that are no UTF-8', async () => {
    const [head, tail] = textSoFar(wire, 'aXb').split('X') as [string, string];
    expect((await ask(raw([head, new Uint8Array([0xff]), tail, endOfText(wire)]))).outcome).toMatchObject({ reply: { text: 'a�b' } });
  });

  it('C26: an error in its middle is named, its text kept only as partial', async () => {
    const errors = {
      ollama: '{"error":"server busy, please try again in 3s"}\n', openai: frame({ error: { message: 'server busy, please try again in 3s', type: 'x' } }),
      anthropic: named({ type: 'error', error: { type: 'overloaded_error', message: 'server busy, please try again in 3s' } }),
    };
    const half = textSoFar(wire, 'Let me');
    for (const chunks of [[half, errors[wire]], [half + errors[wire]]]) {
      const { outcome } = await ask(raw([...chunks, endOfText(wire)]));
      expect(outcome).toMatchObject({ type: 'failed', failure: { error_type: 'overloaded', partial_text: 'Let me', retry_after_s: 3 } });
    }
  });

  it('fails rather than losing what it cannot read', async () => {
    const broken = wire === 'ollama' ? '{"message":{"content":" mid\n' : 'data: {"choices":[{"delta":{"content":" mid\n\n';
    expect(reasonOf((await ask(raw([textSoFar(wire, 'Let me'), broken, endOfText(wire)]))).outcome)).toBe('stream_interrupted');
    expect(reasonOf((await ask(raw(['<html>\nhello\n']))).outcome)).toBe('stream_interrupted');
    expect(reasonOf((await ask(raw([]))).outcome)).toBe('stream_interrupted');
  });

  it('ends where a reply would be larger than any model writes', async () => {
    const own = createModelGateway({ connections: { small: connectionTo(baseUrlOf(wire, server.url)) } });
    server.add(raw([textSoFar(wire, 'x'), ...Array.from({ length: 9 }, () => moreText(wire, 'y'.repeat(1_000_000)))]));
    expect(reasonOf((await callOnce(own, request)).outcome)).toBe('stream_interrupted');
    own.close();
  });
});
