import { describe, expect, it } from 'vitest';
import { strictValidator } from '../../index.ts';

type Loose = Record<string, unknown>;

const call = (id: string, name = 'add', args: unknown = '{"x":1}'): Loose => ({ id, type: 'function', function: { name, arguments: args } });
const asks = (...calls: readonly unknown[]): Loose => ({ role: 'assistant', content: null, tool_calls: calls });
const result = (id: string, over: Loose = {}): Loose => ({ role: 'tool', content: '3', tool_call_id: id, ...over });
const user = (content: unknown = 'hi'): Loose => ({ role: 'user', content });
const tool = (name: string, parameters: unknown = { type: 'object', properties: {} }): Loose => ({ type: 'function', function: { name, description: 'd', parameters } });
const image = (url: string): Loose => ({ type: 'image_url', image_url: { url } });

function problems(messages: readonly unknown[], over: Loose = {}): string {
  return strictValidator({ model: 'm', messages, ...over }, 'openai').join('\n');
}

describe('the strict validator of chat completions', () => {
  it('accepts a conversation with calls, empty results, images and consecutive roles', () => {
    expect(problems([
      { role: 'system', content: 's' }, user(), user([{ type: 'text', text: 'what?' }, image('data:image/png;base64,iVBORw0KGgo=')]),
      { ...asks(call('a'), call('x'.repeat(40))), content: 'let me see' }, result('a'), result('x'.repeat(40), { content: '' }),
      asks(call('c', 'add', '{}')), result('c'), { role: 'assistant', content: 'done' },
    ], { tools: [tool('add')], tool_choice: 'auto', stream: true, stream_options: { include_usage: true }, max_tokens: 100 })).toBe('');
  });

  it.each<[string, readonly unknown[], string]>([
    ['a call without a result', [user(), asks(call('a'), call('b')), result('a')], 'call b has no result'],
    ['a call at the end', [user(), asks(call('a'))], 'call a has no result'],
    ['two results of one call', [user(), asks(call('a')), result('a'), result('a')], 'more than one'],
    ['a result without a call', [user(), result('z')], 'result z has no call'],
    ['a result without an id', [user(), asks(call('a')), result('a', { tool_call_id: undefined })], 'without tool_call_id'],
    ['something between call and result', [user(), asks(call('a')), user('steer'), result('a')], 'call a has no result'],
    ['results out of order', [user(), asks(call('a'), call('b')), result('b'), result('a')], 'out of order'],
    ['an id used twice', [user(), asks(call('a')), result('a'), asks(call('a')), result('a')], 'not unique'],
    ['an id used twice in one message', [user(), asks(call('a'), call('a')), result('a'), result('a')], 'not unique'],
    ['an id of 41 characters', [user(), asks(call('x'.repeat(41))), result('x'.repeat(41))], 'more than 40 characters'],
    ['a call without an id', [user(), asks({ type: 'function', function: { name: 'add', arguments: '{}' } })], 'a call without id'],
    ['a call without a type', [user(), asks({ id: 'a', function: { name: 'add', arguments: '{}' } }), result('a')], 'not of the type function'],
    ['an empty list of calls', [user(), { role: 'assistant', content: 'x', tool_calls: [] }], 'not a list of calls'],
    ['no user message', [{ role: 'system', content: 's' }], 'no user message'],
    ['an empty text', [user(' ')], 'empty text'],
    ['an empty system text', [{ role: 'system', content: '' }, user()], 'empty text'],
    ['an empty text beside a call', [user(), { ...asks(call('a')), content: '' }, result('a')], 'empty text'],
    ['an empty text part', [user([{ type: 'text', text: '' }])], 'empty text'],
    ['an assistant who says nothing', [user(), { role: 'assistant', content: null }], 'content is missing'],
    ['a user who says nothing', [user(null)], 'content is missing'],
    ['an empty list of parts', [user([])], 'an empty list'],
    ['arguments as an object', [user(), asks(call('a', 'add', {})), result('a')], 'not an object as JSON text'],
    ['arguments that are cut', [user(), asks(call('a', 'add', '{"x":')), result('a')], 'not an object as JSON text'],
    ['arguments that are empty', [user(), asks(call('a', 'add', '')), result('a')], 'not an object as JSON text'],
    ['arguments encoded twice', [user(), asks(call('a', 'add', JSON.stringify('{}'))), result('a')], 'not an object as JSON text'],
    ['arguments as a list', [user(), asks(call('a', 'add', '[]')), result('a')], 'not an object as JSON text'],
    ['an illegal name', [user(), asks(call('a', 'files/read')), result('a')], 'illegal tool name'],
    ['half a character', [user('\ud800')], 'lone surrogate'],
    ['a role that only one server knows', [user(), { role: 'developer', content: 'x' }], 'unknown role'],
    ['a thought sent back', [user(), { role: 'assistant', content: 'x', reasoning_content: 'hm' }], 'unknown field reasoning_content'],
    ['a result with the name of its tool', [user(), asks(call('a')), result('a', { tool_name: 'add' })], 'unknown field tool_name'],
    ['an image at an address', [user([image('https://x.test/a.png')])], 'not a data URL'],
    ['an image that is no base64', [user([image('data:image/png;base64,A')])], 'not base64'],
    ['an image of the assistant', [user(), { role: 'assistant', content: [image('data:image/png;base64,AAAA')] }], 'unknown part'],
    ['a block of another wire', [user([{ type: 'tool_result', tool_use_id: 'a' }])], 'unknown part'],
  ])('refuses %s', (_, messages, words) => {
    expect(problems(messages)).toContain(words);
  });

  it.each<[string, Loose, string]>([
    ['a missing model', { model: '' }, 'model is missing'],
    ['an empty list of tools', { tools: [] }, 'tools is an empty list'],
    ['a choice of tools without tools', { tool_choice: 'none' }, 'tool_choice without tools'],
    ['parallel calls without tools', { parallel_tool_calls: false }, 'parallel_tool_calls without tools'],
    ['options of a stream without one', { stream_options: { include_usage: true } }, 'stream_options without stream'],
    ['a max_tokens of 0', { max_tokens: 0 }, 'max_tokens is not a positive integer'],
    ['two limits of the output', { max_tokens: 1, max_completion_tokens: 1 }, 'at the same time'],
    ['a setting that it does not know', { options: {} }, 'unknown field options'],
    ['a reference that leads nowhere', { tools: [tool('add', { type: 'object', properties: { q: { $ref: '#/$defs/Q' } } })] }, 'does not resolve'],
    ['a choice at the top of a schema', { tools: [tool('add', { type: 'object', anyOf: [] })] }, 'anyOf at the top'],
    ['an illegal tool name', { tools: [tool('a'.repeat(65))] }, 'illegal tool name'],
    ['two tools of one name', { tools: [tool('add'), tool('add')] }, 'not unique'],
    ['a tool in the words of another wire', { tools: [{ name: 'add', input_schema: { type: 'object' } }] }, 'not of the type function'],
  ])('refuses %s', (_, over, words) => {
    expect(problems([user()], over)).toContain(words);
  });

  it('refuses what is no request at all', () => {
    for (const body of [null, 5, [], 'x', {}]) expect(strictValidator(body, 'openai').length).toBeGreaterThan(0);
  });
});
