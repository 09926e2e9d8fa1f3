/** What Ollama's stream may hold that is no line of a reply. Where bytes are cut: `src/stream-integrity.test.ts`. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { raw, reply, startModelServer, type ModelServer, type ScriptedReply } from '@treadle/testkit';
import type { ClosableModelGateway } from '../../gateway.ts';
import { callOnce, gatewayTo, reasonOf } from '../../testing.ts';

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

async function ask(scripted: ScriptedReply) {
  server.add(scripted);
  return callOnce(gateway);
}

describe('the lines of servers that imitate this wire', () => {
  it.each([null, '', false])('have an error that is %j and says nothing', async (error) => {
    expect((await ask(raw([`${JSON.stringify({ message: { content: 'ok' }, done: false, error })}\n`, `${JSON.stringify({ done: true, done_reason: 'stop', error })}\n`]))).outcome).toMatchObject({ reply: { text: 'ok' } });
  });

  it('have text in parts, a call without its function, and other words for an end', async () => {
    const line = { message: { content: [{ type: 'text', text: 'ok' }], tool_calls: [{ id: 'c', name: 'save', arguments: { p: 1 } }] }, done: true };
    expect((await ask(raw([JSON.stringify({ ...line, done_reason: 'stop' })]))).outcome).toMatchObject({ reply: { text: 'ok', calls: [{ provider_id: 'c', name: 'save', input: { p: 1 } }] } });
    expect((await ask(raw([JSON.stringify({ ...line, done_reason: 'max_tokens' })]))).outcome).toMatchObject({ reply: { finish: 'length' } });
    expect((await ask(raw([JSON.stringify({ ...line, done_reason: 'content_filter' })]))).outcome).toMatchObject({ failure: { error_type: 'content_blocked' } });
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
