import { describe, expect, it } from 'vitest';
import type { Message } from '@treadle/core';
import { startModelServer, strictValidator, text } from '@treadle/testkit';
import { callOnce, gatewayTo, reasonOf, requestOf, toolNamed } from '../../testing.ts';
import { imageOf } from '../../request/images.ts';
import { render } from './render.ts';

const png = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 1, 2, 3, 4]).toString('base64');

const conversation: readonly Message[] = [
  { role: 'user', content: 'Add 1 and 2' },
  {
    role: 'assistant', text: '', thinking: 'hm', model: 'small',
    calls: [{ tool_use_id: 'a', tool_name: 'math/add', tool_input: { x: 1 } }, { tool_use_id: 'b', tool_name: 'invented.tool/ü', tool_input: {} }],
  },
  { role: 'tool', tool_use_id: 'a', tool_name: 'math/add', content: '3', is_error: false },
  { role: 'tool', tool_use_id: 'b', tool_name: 'invented.tool/ü', content: 'no such tool', is_error: true },
  { role: 'host', note: 'steer', content: 'in French' },
  { role: 'host', note: 'reask', content: 'Answer, please.' },
];

function messagesOf(messages: readonly Message[], over: Parameters<typeof requestOf>[0] = {}) {
  return render(requestOf({ system: '', messages, tools: [toolNamed('math/add')], ...over })).messages;
}

describe('a rendered request', () => {
  it('always names its window and forbids the server to drop what does not fit', () => {
    expect(render(requestOf())).toMatchObject({ truncate: false, shift: false, stream: true, options: { num_ctx: 8192, num_predict: 1024 } });
  });

  it('is valid for a strict provider', () => {
    const request = requestOf({ messages: conversation, tools: [toolNamed('math/add')] });
    expect(strictValidator(JSON.parse(JSON.stringify(render(request))), 'ollama')).toEqual([]);
  });

  it('puts the system text first, and leaves an empty one out', () => {
    expect(render(requestOf()).messages[0]).toEqual({ role: 'system', content: 'You are a test.' });
    expect(messagesOf(conversation)[0]?.role).toBe('user');
  });

  it('gives calls and results their ids and wire names, invented names made legal', () => {
    const messages = messagesOf(conversation);
    expect(messages[1]).toEqual({
      role: 'assistant', content: '',
      tool_calls: [
        { id: 'a', function: { index: 0, name: 'math__add', arguments: { x: 1 } } },
        { id: 'b', function: { index: 1, name: 'invented_tool___', arguments: {} } },
      ],
    });
    expect(messages[2]).toEqual({ role: 'tool', content: '3', tool_name: 'math__add', tool_call_id: 'a' });
  });

  it('marks an error in its text, and does not lose an empty result', () => {
    expect(messagesOf(conversation)[3]).toMatchObject({ content: 'ERROR: no such tool', tool_name: 'invented_tool___' });
    const empty: Message = { role: 'tool', tool_use_id: 'a', tool_name: 'math/add', content: '', is_error: true };
    expect(messagesOf([empty])[0]).toMatchObject({ content: 'ERROR: (no output)' });
  });

  it('says what the host says as the user, a steering text marked as coming from no tool', () => {
    const [steer, reask] = messagesOf(conversation).slice(4);
    expect(steer).toMatchObject({ role: 'user' });
    expect(steer?.content).toMatch(/does not come from a tool.*\nin French$/);
    expect(reask).toEqual({ role: 'user', content: 'Answer, please.' });
  });

  it.each([['', 'unnamed_tool'], ['x'.repeat(80), 'x'.repeat(64)], ['a b', 'a_b'], ['🌍', '_']])('makes the name "%s" legal', (name, legal) => {
    const messages = messagesOf([{ role: 'assistant', text: '', thinking: '', model: 'm', calls: [{ tool_use_id: 'a', tool_name: name, tool_input: {} }] }]);
    expect(messages[0]?.tool_calls?.[0]?.function.name).toBe(legal);
  });

  it('trims the end of the last assistant text only', () => {
    const said = (content: string): Message => ({ role: 'assistant', text: content, thinking: '', calls: [], model: 'm' });
    expect(messagesOf([said('one \n'), { role: 'user', content: 'go on ' }, said('two \n')]).map((message) => message.content)).toEqual(['one \n', 'go on ', 'two']);
  });
});

describe('images', () => {
  it('are sent as base64 that is really an image, and never as the name of a file', () => {
    const user = (data: string): Message => ({ role: 'user', content: [{ type: 'text', text: 'see' }, { type: 'image', media_type: 'image/png', data }] });
    expect(messagesOf([user(png)])).toEqual([{ role: 'user', content: 'see', images: [png] }]);
    expect(messagesOf([user(`data:image/png;base64,${png}`)])[0]?.images).toEqual([png]);
    for (const path of ['/etc/passwd', '/bin/zsh', import.meta.filename, '', '????', 'iVBORw0KGgo']) {
      expect(imageOf(path), path).toBeNull();
      expect(messagesOf([user(path)])).toEqual([{ role: 'user', content: 'see\n[An image that could not be read was left out.]' }]);
    }
  });

  it('become a note where the model takes none', () => {
    const model = { ...requestOf().model, supports_images: false };
    const messages = messagesOf([{ role: 'user', content: [{ type: 'image', media_type: 'image/png', data: png }] }], { model });
    expect(messages).toEqual([{ role: 'user', content: '[An image was left out: this model takes none.]' }]);
  });
});

describe('on the wire', () => {
  it('the client sends just what was rendered', async () => {
    const server = await startModelServer({ dialect: 'ollama', script: [text('ok')] });
    const request = requestOf({ messages: [...conversation, { role: 'user', content: [{ type: 'image', media_type: 'image/png', data: png }] }], tools: [toolNamed('math/add')] });
    const gateway = gatewayTo(server.url);
    expect(reasonOf((await callOnce(gateway, request)).outcome)).toBe('replied');
    expect(server.requests[0]?.body).toEqual(JSON.parse(JSON.stringify(render(request))));
    server.assertUsedUp();
    gateway.close();
    await server.close();
  });

  it('a request without a user message is not sent, since Ollama would only load the model', async () => {
    const { outcome } = await callOnce(gatewayTo('http://127.0.0.1:1'), requestOf({ messages: [] }));
    expect(outcome).toMatchObject({ type: 'failed', failure: { error_type: 'history_invalid' } });
  });
});
