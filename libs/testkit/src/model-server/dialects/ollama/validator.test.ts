import { describe, expect, it } from 'vitest';
import { strictValidator } from '../index.ts';

type Loose = Record<string, unknown>;

const call = (id: string, name = 'add', args: unknown = { x: 1 }): Loose => ({ id, function: { name, arguments: args } });
const asks = (...calls: readonly unknown[]): Loose => ({ role: 'assistant', content: '', tool_calls: calls });
const result = (id: string, over: Loose = {}): Loose => ({ role: 'tool', content: '3', tool_name: 'add', tool_call_id: id, ...over });
const user = (content = 'hi'): Loose => ({ role: 'user', content });
const tool = (name: string, parameters: unknown = { type: 'object', properties: {} }): Loose => ({ type: 'function', function: { name, description: 'd', parameters } });

function bodyOf(messages: readonly unknown[], over: Loose = {}): Loose {
  return { model: 'm', messages, truncate: false, options: { num_ctx: 4096 }, ...over };
}

function problems(messages: readonly unknown[], over: Loose = {}): string {
  return strictValidator(bodyOf(messages, over), 'ollama').join('\n');
}

describe('the strict validator', () => {
  it('accepts a conversation with calls, results, empty results, images and consecutive roles', () => {
    const schema = { type: 'object', properties: { q: { $ref: '#/$defs/Q' } }, $defs: { Q: { type: 'string' } } };
    expect(problems([
      { role: 'system', content: 's' }, user(), asks(call('a'), call('b')), result('a'), result('b', { content: '' }), user('one'), user('two'),
      { role: 'user', content: '', images: ['iVBORw0KGgo='] }, { role: 'assistant', content: 'done' },
    ], { tools: [tool('add', schema)] })).toBe('');
  });

  it.each<[string, readonly unknown[], string]>([
    ['a call without a result', [user(), asks(call('a'), call('b')), result('a')], 'call b has no result'],
    ['a call at the end', [user(), asks(call('a'))], 'call a has no result'],
    ['two results of one call', [user(), asks(call('a')), result('a'), result('a')], 'more than one'],
    ['a result without a call', [user(), result('z')], 'result z has no call'],
    ['a result without an id', [user(), asks(call('a')), result('a', { tool_call_id: undefined })], 'without the id of its call'],
    ['something between call and result', [user(), asks(call('a')), user('steer'), result('a')], 'call a has no result'],
    ['results out of order', [user(), asks(call('a'), call('b')), result('b'), result('a')], 'out of order'],
    ['a result that names another tool', [user(), asks(call('a')), result('a', { tool_name: 'sub' })], 'names another tool'],
    ['an id used twice', [user(), asks(call('a')), result('a'), asks(call('a')), result('a')], 'not unique'],
    ['a call without an id', [user(), { role: 'assistant', content: '', tool_calls: [{ function: { name: 'add', arguments: {} } }] }], 'without id'],
    ['no user message', [{ role: 'system', content: 's' }], 'no user message'],
    ['no message', [], 'no user message'],
    ['an empty user text', [user(' ')], 'empty text'],
    ['an empty system text', [{ role: 'system', content: '' }, user()], 'empty text'],
    ['an empty assistant text without calls', [user(), { role: 'assistant', content: '' }], 'empty text'],
    ['content that is a list', [{ role: 'user', content: [{ type: 'text', text: 'x' }] }], 'not a string'],
    ['arguments as text', [user(), asks(call('a', 'add', '{}')), result('a')], 'not an object'],
    ['arguments as a list', [user(), asks(call('a', 'add', [])), result('a')], 'not an object'],
    ['an illegal name of a call', [user(), asks(call('a', 'files/read')), result('a', { tool_name: 'files/read' })], 'illegal tool name'],
    ['half a character', [user('\ud800')], 'lone surrogate'],
    ['half a character in arguments', [user(), asks(call('a', 'add', { '\udc00': 1 })), result('a')], 'lone surrogate in a key'],
    ['an unknown role', [user(), { role: 'developer', content: 'x' }], 'unknown role'],
    ['an image with a prefix', [{ role: 'user', content: 'x', images: ['data:image/png;base64,AAAA'] }], 'not base64'],
    ['a path for an image', [{ role: 'user', content: 'x', images: ['/etc/passwd'] }], 'not base64'],
  ])('refuses %s', (_, messages, words) => {
    expect(problems(messages)).toContain(words);
  });

  it.each<[string, Loose, string]>([
    ['a missing num_ctx', { options: {} }, 'num_ctx'],
    ['truncate left to the server', { truncate: undefined }, 'truncate'],
    ['truncate true', { truncate: true }, 'truncate'],
    ['a missing model', { model: '' }, 'model is missing'],
    ['a reference that leads nowhere', { tools: [tool('add', { type: 'object', properties: { q: { $ref: '#/$defs/Q' } } })] }, 'does not resolve'],
    ['a reference to another document', { tools: [tool('add', { type: 'object', properties: { q: { $ref: 'https://x.test/s' } } })] }, 'does not resolve'],
    ['an illegal tool name', { tools: [tool('a'.repeat(65))] }, 'illegal tool name'],
    ['two tools of one name', { tools: [tool('add'), tool('add')] }, 'not unique'],
    ['a schema that is none', { tools: [tool('add', null)] }, 'not an object schema'],
  ])('refuses %s', (_, over, words) => {
    expect(problems([user()], over)).toContain(words);
  });

  it('refuses what is no request at all', () => {
    for (const body of [null, 5, [], 'x', {}]) expect(strictValidator(body, 'ollama').length).toBeGreaterThan(0);
  });
});
