import { describe, expect, it } from 'vitest';
import type { Message } from '@treadle/core';
import { startModelServer, strictValidator, text } from '@treadle/testkit';
import { callOnce, gatewayTo, reasonOf, requestOf, talk, toolNamed } from '../../testing.ts';
import { render } from './render.ts';

const wireOf = (messages: readonly Message[], over: Parameters<typeof requestOf>[0] = {}) => render(requestOf({ system: '', messages, tools: [toolNamed('math/add')], ...over }, 'openai'), false);
const problems = (body: unknown) => strictValidator(JSON.parse(JSON.stringify(body)), 'openai');

describe('a rendered request', () => {
  it('is valid for a strict server', () => {
    expect(problems(wireOf(talk, { system: 'You are a test.' }))).toEqual([]);
  });

  it('has calls with arguments as text, beside text that is there or null; and their results behind them', () => {
    expect(wireOf(talk).messages.slice(1, 4)).toEqual([
      {
        role: 'assistant', content: null, tool_calls: [
          { id: 'call_t1_0', type: 'function', function: { name: 'math__add', arguments: '{"x":1}' } },
          { id: expect.stringMatching(/^functions_invented_1_[0-9a-f]{10}$/) as string, type: 'function', function: { name: 'invented_tool___', arguments: '{}' } },
        ],
      },
      { role: 'tool', tool_call_id: 'call_t1_0', content: '3' },
      { role: 'tool', tool_call_id: expect.stringMatching(/^functions_invented_1_/) as string, content: 'ERROR: no such tool' },
    ]);
  });

  it('C13: has ids of at most 40 legal characters, the same ones every time, and two for two', () => {
    const ids = (id: string): readonly string[] => wireOf([
      { role: 'user', content: 'x' }, { role: 'assistant', text: '', thinking: '', model: 'm', calls: [{ tool_use_id: id, tool_name: 'math/add', tool_input: {} }] },
      { role: 'tool', tool_use_id: id, tool_name: 'math/add', content: '', is_error: false },
    ]).messages.flatMap((message) => (message.role === 'assistant' ? message.tool_calls?.map((call) => call.id) ?? [] : message.role === 'tool' ? [message.tool_call_id] : []));
    const long = 'x'.repeat(64);
    for (const id of [long, `${long}y`, 'functions.save:0', 'ü', '']) {
      const [call, result] = ids(id);
      expect(call).toMatch(/^[a-zA-Z0-9_-]{1,40}$/);
      expect([result, ids(id)[0]]).toEqual([call, call]);
    }
    expect(new Set([long, `${long}y`, 'a.b', 'a:b', 'a_b'].map((id) => ids(id)[0])).size).toBe(5);
    expect(ids('call_1')[0]).toBe('call_1');
  });

  it('asks for the counts, and names the output limit as the server knows it', () => {
    expect(wireOf(talk)).toMatchObject({ stream: true, stream_options: { include_usage: true }, max_tokens: 1024 });
    expect(render(requestOf({}, 'openai'), true)).toMatchObject({ max_completion_tokens: 1024 });
    expect(render(requestOf({}, 'openai'), true)).not.toHaveProperty('max_tokens');
  });

  it('has no tools where there are none', () => {
    expect(wireOf([{ role: 'user', content: 'x' }], { tools: [] })).not.toHaveProperty('tools');
  });

  it('has schemas that any server can read', () => {
    const tool = toolNamed('save', { type: 'object', properties: { when: { $ref: '#/$defs/Day' } }, $defs: { Day: { type: 'string', format: 'date' } } });
    expect(wireOf(talk, { tools: [tool] }).tools?.[0]?.function.parameters).toEqual({ type: 'object', properties: { when: { type: 'string', description: '(format: date)' } } });
  });

  it('C24: has no assistant text that ends in blanks, and none that is empty', () => {
    const messages = wireOf([{ role: 'user', content: 'x' }, { role: 'assistant', text: 'Working on it \n', thinking: '', calls: [], model: 'm' }, { role: 'host', note: 'continue', content: 'Go on.' }]).messages;
    expect(messages.map((message) => message.content)).toEqual(['x', 'Working on it', 'Go on.']);
    expect(problems(wireOf([{ role: 'user', content: ' ' }, { role: 'assistant', text: ' ', thinking: '', calls: [], model: 'm' }, { role: 'user', content: [] }]))).toEqual([]);
  });

  it('C69: has no thinking, whosever it was', () => {
    expect(JSON.stringify(wireOf(talk))).not.toContain('hm, let me think');
  });

  it('has images as data URLs, among the text in its order; text alone as text', () => {
    const [image] = wireOf(talk).messages.slice(-1);
    expect(image?.content).toEqual([{ type: 'text', text: 'see' }, { type: 'image_url', image_url: { url: expect.stringMatching(/^data:image\/png;base64,iVBOR/) as string } }, { type: 'text', text: 'there' }]);
    expect(wireOf([{ role: 'user', content: [{ type: 'text', text: 'a' }, { type: 'text', text: 'b' }] }]).messages[0]?.content).toBe('a\nb');
    expect(wireOf([{ role: 'user', content: [{ type: 'image', media_type: 'image/png', data: '/etc/passwd' }] }]).messages[0]?.content).toBe('[An image that could not be read was left out.]');
  });
});

it('the client sends just what was rendered', async () => {
  const server = await startModelServer({ dialect: 'openai', script: [text('ok')] });
  const request = requestOf({ messages: talk, tools: [toolNamed('math/add')] }, 'openai');
  const gateway = gatewayTo(`${server.url}/v1`);
  expect(reasonOf((await callOnce(gateway, request)).outcome)).toBe('replied');
  expect(server.requests[0]?.body).toEqual(JSON.parse(JSON.stringify(render(request, false))));
  server.assertUsedUp();
  gateway.close();
  await server.close();
});
