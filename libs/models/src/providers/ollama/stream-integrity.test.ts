import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { cut, raw, reply, startModelServer, type ModelServer, type ScriptedReply, type WholeReply } from '@treadle/testkit';
import type { ClosableModelGateway } from '../../gateway.ts';
import { callOnce, gatewayTo, reasonOf, requestOf, toolNamed } from '../../testing.ts';

let server: ModelServer;
let gateway: ClosableModelGateway;

beforeAll(async () => {
  server = await startModelServer({ dialect: 'ollama', script: [] });
  gateway = gatewayTo(server.url);
});

afterAll(async () => {
  gateway.close();
  await server.close();
});

const request = requestOf({ tools: [toolNamed('files/save')] });
const message = { usage: { prompt: 40, output: 9 }, text: '현재 🌍 ok', thinking: 'hm, é', calls: [{ id: 'call_1', name: 'files__save', args: { path: 'é/🌍.txt' } }] };

async function ask(scripted: ScriptedReply) {
  server.add(scripted);
  return callOnce(gateway, request);
}

/** The body of `message`, as the server streams it. */
async function bodyOf(whole: WholeReply): Promise<Buffer> {
  server.add(whole);
  const sent = { model: 'scripted:latest', messages: [{ role: 'user', content: 'x' }], truncate: false, options: { num_ctx: 1 } };
  const response = await fetch(`${server.url}/api/chat`, { method: 'POST', body: JSON.stringify(sent) });
  return Buffer.from(await response.arrayBuffer());
}

describe('where the bytes are cut', () => {
  it('makes no difference to text, thinking and arguments, at any offset, with LF and with CRLF', async () => {
    const body = await bodyOf(reply(message));
    expect(body.length).toBeGreaterThan(600);
    const whole = (await ask(raw([body]))).outcome;
    expect(whole).toMatchObject({ type: 'replied', reply: { text: message.text, thinking: message.thinking, calls: [{ input: message.calls[0]?.args, problem: null }] } });
    const withCrlf = Buffer.from(body.toString().replaceAll('\n', '\r\n'));
    for (const bytes of [body, withCrlf]) {
      for (let offset = 1; offset < bytes.length; offset++) {
        const { outcome, increments } = await ask(raw([bytes.subarray(0, offset), bytes.subarray(offset)]));
        expect(outcome, `cut at ${offset}`).toEqual(whole);
        expect(increments.join('')).toBe(message.text);
      }
      expect((await ask(raw([bytes], { cutAt: 'every_byte' }))).outcome).toEqual(whole);
    }
  });

  it('shows whole characters only, also where a line ends inside one', async () => {
    const line = (content: string): string => `{"message":{"role":"assistant","content":"${content}"},"done":false}\n`;
    const last = '{"message":{"role":"assistant","content":""},"done":true,"done_reason":"stop"}\n';
    const { outcome, increments } = await ask(raw([line(String.raw`a\ud83c`), line(String.raw`\udf0d b`), line(String.raw`\udf0d`), line(String.raw`\ud83c`), last]));
    expect(outcome).toMatchObject({ reply: { text: 'a🌍 b��' } });
    expect(increments.every((increment) => increment.isWellFormed())).toBe(true);
  });

  it('replaces bytes that are no UTF-8', async () => {
    const [head, tail] = ['{"message":{"role":"assistant","content":"a', 'b"},"done":true,"done_reason":"stop"}\n'];
    expect((await ask(raw([head, new Uint8Array([0xff]), tail]))).outcome).toMatchObject({ reply: { text: 'a�b' } });
  });
});

describe('a reply that is cut', () => {
  it('is never taken for a whole one, at any byte, whether reset or ended', async () => {
    const body = await bodyOf(reply(message));
    // Without the last line feed the last line is still whole.
    const wholeAt = body.length - 1;
    for (const how of ['reset', 'eof'] as const) {
      for (let afterBytes = 0; afterBytes < body.length; afterBytes++) {
        const { outcome, increments } = await ask(cut({ afterBytes, how, of: reply(message) }));
        const shown = increments.join('');
        expect(message.text.startsWith(shown), `${how} at ${afterBytes}`).toBe(true);
        if (afterBytes === wholeAt && how === 'eof') {
          expect(reasonOf(outcome)).toBe('replied');
          continue;
        }
        expect(outcome, `${how} at ${afterBytes}`).toMatchObject({ type: 'failed', failure: { partial_text: shown } });
        expect(['stream_interrupted', 'connect_failed']).toContain(reasonOf(outcome));
      }
    }
  });

  it('is interrupted, not refused, once the status line has come', async () => {
    expect(reasonOf((await ask(cut({ afterBytes: 30 }))).outcome)).toBe('stream_interrupted');
    expect(reasonOf((await ask(cut({ afterBytes: 'headers', how: 'eof' }))).outcome)).toBe('stream_interrupted');
  });
});

describe('a stream that says something else', () => {
  const first = '{"message":{"role":"assistant","content":"Let me"},"done":false}\n';

  it('fails by the error line in its middle, its text kept only as partial', async () => {
    const { outcome } = await ask(raw([first, '{"error":"an error was encountered while running the model"}\n']));
    expect(outcome).toMatchObject({ type: 'failed', failure: { error_type: 'server_error', partial_text: 'Let me' } });
  });

  it('reads what stands before the error in the same chunk', async () => {
    expect((await ask(raw([`${first}{"error":"x"}\n`]))).outcome).toMatchObject({ failure: { error_type: 'server_error', partial_text: 'Let me' } });
  });

  it('reads the words of an error that is an object', async () => {
    const { outcome } = await ask(raw([first, '{"error":{"message":"server busy, please try again in 3s","type":"x"}}\n']));
    expect(outcome).toMatchObject({ failure: { error_type: 'overloaded', detail: 'in the middle of the reply: server busy, please try again in 3s x', retry_after_s: 3 } });
  });

  it('fails rather than losing a line that cannot be read', async () => {
    const last = '{"message":{"role":"assistant","content":" end"},"done":true}\n';
    expect(reasonOf((await ask(raw([first, '{"message":{"content":" mid\n', last]))).outcome)).toBe('stream_interrupted');
    expect(reasonOf((await ask(raw([first, '17\n', last]))).outcome)).toBe('stream_interrupted');
    expect(reasonOf((await ask(raw(['<html>\nhello\n']))).outcome)).toBe('stream_interrupted');
  });

  it('passes over blank lines, and over whatever follows the last line', async () => {
    const last = '{"message":{"role":"assistant","content":"."},"done":true,"done_reason":"stop"}\n';
    expect((await ask(raw([first, '\n', ' \r\n', last, '{"error":"late"}\n', 'junk']))).outcome).toMatchObject({ reply: { text: 'Let me.' } });
  });

  it('is loading when the model is, and never an answer', async () => {
    for (const done_reason of ['load', 'unload']) {
      expect((await ask(reply({ text: '', done_reason }))).outcome).toMatchObject({ type: 'failed', failure: { error_type: 'overloaded', detail: 'model is loading' } });
    }
  });
});
