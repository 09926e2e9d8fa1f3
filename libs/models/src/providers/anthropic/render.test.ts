import { describe, expect, it } from 'vitest';
import type { Message } from '@treadle/core';
import { startModelServer, strictValidator, text } from '@treadle/testkit';
import { callOnce, gatewayTo, reasonOf, requestOf, talk, toolNamed } from '../../testing.ts';
import { render } from './render.ts';

const wireOf = (messages: readonly Message[], over: Parameters<typeof requestOf>[0] = {}) => render(requestOf({ system: '', messages, tools: [toolNamed('math/add')], ...over }, 'anthropic'));
const problems = (body: unknown) => strictValidator(JSON.parse(JSON.stringify(body)), 'anthropic');
const user = (content: string): Message => ({ role: 'user', content });
const said = (words: string): Message => ({ role: 'assistant', text: words, thinking: '', calls: [], model: 'small' });
const calling = (...ids: readonly string[]): Message => ({ role: 'assistant', text: '', thinking: '', model: 'small', calls: ids.map((id) => ({ tool_use_id: id, tool_name: 'math/add', tool_input: {} })) });
const result = (id: string, content = 'r', is_error = false): Message => ({ role: 'tool', tool_use_id: id, tool_name: 'math/add', content, is_error });

describe('a rendered request', () => {
  it('is valid for a strict server', () => {
    expect(problems(wireOf(talk, { system: 'You are a test.' }))).toEqual([]);
    expect(wireOf(talk, { system: 'You are a test.' })).toMatchObject({ system: 'You are a test.', max_tokens: 1024, stream: true });
    expect(wireOf(talk)).not.toHaveProperty('system');
  });

  it('is one message per turn: results first, in one user message, whatever is said behind them in the same', () => {
    const { messages } = wireOf(talk);
    expect(messages.map((message) => message.role)).toEqual(['user', 'assistant', 'user', 'assistant', 'user']);
    expect(messages[2]?.content.map((block) => block.type)).toEqual(['tool_result', 'tool_result', 'text']);
    expect(wireOf([user('a'), user('b')]).messages).toEqual([{ role: 'user', content: [{ type: 'text', text: 'a' }, { type: 'text', text: 'b' }] }]);
  });

  it('flags an error, whose text stays bare, and loses no empty result', () => {
    const [first, second] = wireOf([user('x'), calling('a', 'b'), result('a', ''), result('b', 'no such tool', true)]).messages[2]?.content ?? [];
    expect(first).toEqual({ type: 'tool_result', tool_use_id: 'a', content: [{ type: 'text', text: '(no output)' }] });
    expect(second).toEqual({ type: 'tool_result', tool_use_id: 'b', content: [{ type: 'text', text: 'no such tool' }], is_error: true });
  });

  it('C05: has what steers inside the last result, marked as coming from no tool', () => {
    const messages = wireOf([user('x'), calling('a'), result('a'), { role: 'host', note: 'steer', content: 'in French' }]).messages;
    expect(messages.at(-1)?.content).toEqual([{
      type: 'tool_result', tool_use_id: 'a', content: [{ type: 'text', text: 'r' }, { type: 'text', text: expect.stringMatching(/does not come from a tool.*\nin French$/) as string }],
    }]);
    expect(wireOf([user('x'), { role: 'host', note: 'steer', content: 'in French' }]).messages[0]?.content.map((block) => block.type)).toEqual(['text', 'text']);
  });

  it('C13: has ids that the wire takes', () => {
    const { messages } = wireOf([user('x'), calling('functions.save:0'), result('functions.save:0')]);
    const [call] = messages[1]?.content ?? [];
    const [answer] = messages[2]?.content ?? [];
    expect(call).toMatchObject({ id: expect.stringMatching(/^functions_save_0_[0-9a-f]{10}$/) as string });
    expect(answer).toMatchObject({ tool_use_id: (call as { id: string }).id });
  });

  it('C21: has no empty text beside calls', () => {
    expect(wireOf([user('x'), calling('a'), result('a')]).messages[1]?.content.map((block) => block.type)).toEqual(['tool_use']);
  });

  it('C24: has no assistant text that ends in blanks, and the user at both ends', () => {
    const { messages } = wireOf([said('Working on it \n')]);
    expect(messages.map((message) => message.content)).toMatchObject([[{ type: 'text' }], [{ text: 'Working on it' }], [{ text: 'Continue.' }]]);
    expect(problems(wireOf([said('Working on it \n')]))).toEqual([]);
    expect(problems(wireOf([user('x'), said(' '), user('y')]))).toEqual([]);
  });

  it('names the tools of calls that were made when none are offered, and lets none be called', () => {
    const wire = wireOf([user('x'), calling('a'), result('a'), user('Sum it up.')], { tools: [] });
    expect(wire).toMatchObject({ tools: [{ name: 'math__add', input_schema: { type: 'object' } }], tool_choice: { type: 'none' } });
    expect(problems(wire)).toEqual([]);
    expect(wireOf([user('x')], { tools: [] })).not.toHaveProperty('tools');
  });

  it('has images of the kind that their bytes are', () => {
    expect(wireOf(talk).messages.at(-1)?.content[1]).toEqual({ type: 'image', source: { type: 'base64', media_type: 'image/png', data: expect.stringMatching(/^iVBOR/) as string } });
    const none = { ...requestOf().model, supports_images: false };
    expect(wireOf(talk, { model: none }).messages.at(-1)?.content[1]).toEqual({ type: 'text', text: '[An image was left out: this model takes none.]' });
  });
});

it('the client sends just what was rendered', async () => {
  const server = await startModelServer({ dialect: 'anthropic', script: [text('ok')] });
  const request = requestOf({ messages: talk, tools: [toolNamed('math/add')] }, 'anthropic');
  const gateway = gatewayTo(server.url);
  expect(reasonOf((await callOnce(gateway, request)).outcome)).toBe('replied');
  expect(server.requests[0]?.body).toEqual(JSON.parse(JSON.stringify(render(request))));
  server.assertUsedUp();
  gateway.close();
  await server.close();
});
