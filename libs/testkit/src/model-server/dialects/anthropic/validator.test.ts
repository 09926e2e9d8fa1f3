import { describe, expect, it } from 'vitest';
import { png } from '../png-fixture.ts';
import { signatureOf, strictValidator } from '../../index.ts';
import { sealed } from './signature.ts';

type Loose = Record<string, unknown>;

const use = (id: string, name = 'add', input: unknown = { x: 1 }): Loose => ({ type: 'tool_use', id, name, input });
const says = (text: string): Loose => ({ type: 'text', text });
const asks = (...content: readonly unknown[]): Loose => ({ role: 'assistant', content });
const result = (id: string, over: Loose = {}): Loose => ({ type: 'tool_result', tool_use_id: id, content: '3', ...over });
const user = (...content: readonly unknown[]): Loose => ({ role: 'user', content: content.length === 0 ? 'hi' : content });
const tool = (name: string, schema: unknown = { type: 'object', properties: {} }, over: Loose = {}): Loose => ({ name, description: 'd', input_schema: schema, ...over });
const image = (data: string, type = 'image/png'): Loose => ({ type: 'image', source: { type: 'base64', media_type: type, data } });
const thought = (model = 'm', thinking = 'hm'): Loose => ({ type: 'thinking', thinking, signature: signatureOf(model, thinking) });

function problems(messages: readonly unknown[], over: Loose = {}): string {
  return strictValidator({ model: 'm', max_tokens: 100, messages, tools: [tool('add')], ...over }, 'anthropic').join('\n');
}

describe('the strict validator of messages', () => {
  it('accepts calls with results, errors, images, thoughts of its own and consecutive roles', () => {
    expect(problems([
      user(), user(says('two')), asks(thought(), { type: 'redacted_thinking', data: sealed('m', 'psst') }, says('let me see '), use('a_1'), use('b-2')),
      user(result('a_1'), result('b-2', { content: [says('no'), image(png(10, 10))], is_error: true }), says('steer')),
      asks(use('c')), user(result('c', { content: undefined })), asks(says('done')), user(image(png(8000, 10)), says('what is it?')),
    ], { system: [{ type: 'text', text: 's', cache_control: { type: 'ephemeral' } }], stream: true, thinking: { type: 'enabled', budget_tokens: 50 } })).toBe('');
  });

  it.each<[string, readonly unknown[], string]>([
    ['a call without a result', [user(), asks(use('a'), use('b')), user(result('a'))], 'call b has no result'],
    ['two results of one call', [user(), asks(use('a')), user(result('a'), result('a'))], 'more than one'],
    ['a result without a call', [user(result('z'))], 'result z has no call'],
    ['a result without an id', [user(), asks(use('a')), user(result('a', { tool_use_id: undefined }))], 'without the id of its call'],
    ['text between call and result', [user(), asks(use('a')), user(says('steer'), result('a'))], 'call a has no result'],
    ['a message between call and result', [user(), asks(use('a')), user(), user(result('a'))], 'call a has no result'],
    ['results in two messages', [user(), asks(use('a'), use('b')), user(result('a')), user(result('b'))], 'call b has no result'],
    ['results out of order', [user(), asks(use('a'), use('b')), user(result('b'), result('a'))], 'out of order'],
    ['text behind a call', [user(), asks(use('a'), says('and')), user(result('a'))], 'a block stands behind a call'],
    ['an id used twice', [user(), asks(use('a')), user(result('a')), asks(use('a')), user(result('a'))], 'not unique'],
    ['an id used twice in one message', [user(), asks(use('a'), use('a')), user(result('a'), result('a'))], 'not unique'],
    ['an id of another pattern', [user(), asks(use('functions.save:0')), user(result('functions.save:0'))], 'not of the pattern'],
    ['a call without an id', [user(), asks({ type: 'tool_use', name: 'add', input: {} }), user()], 'not of the pattern'],
    ['an illegal name', [user(), asks(use('a', 'files/read')), user(result('a'))], 'illegal tool name'],
    ['arguments as text', [user(), asks(use('a', 'add', '{}')), user(result('a'))], 'not an object'],
    ['no message', [], 'the first message is not the user'],
    ['an assistant who begins', [asks(says('x')), user()], 'the first message is not the user'],
    ['prefill', [user(), asks(says('The answer is'))], 'prefill'],
    ['a last text that ends in whitespace', [user(), asks(says('Working on it \n')), user()], 'ends in whitespace'],
    ['an empty text', [user(says(''))], 'empty text'],
    ['a text of blanks', [user(), asks(says(' \n')), user()], 'empty text'],
    ['an empty text beside a call', [user(), asks(says(''), use('a')), user(result('a'))], 'empty text'],
    ['an empty text in a result', [user(), asks(use('a')), user(result('a', { content: [says('')] }))], 'empty text'],
    ['an empty string', [{ role: 'user', content: '' }], 'empty text'],
    ['an empty list', [user(), { role: 'assistant', content: [] }, user()], 'empty list'],
    ['null for content', [user(), { role: 'assistant', content: null }, user()], 'neither a string nor a list'],
    ['an error without words', [user(), asks(use('a')), user(result('a', { content: '', is_error: true }))], 'an error without content'],
    ['a thought of another model', [user(), asks(thought('other'), use('a')), user(result('a'))], 'Invalid `signature`'],
    ['a thought with other words', [user(), asks({ ...thought(), thinking: 'hm!' }, use('a')), user(result('a'))], 'Invalid `signature`'],
    ['a thought that is not signed', [user(), asks({ type: 'thinking', thinking: 'hm', signature: '' }, use('a')), user(result('a'))], 'Invalid `signature`'],
    ['a sealed thought of another model', [user(), asks({ type: 'redacted_thinking', data: sealed('other', 'x') }, use('a')), user(result('a'))], 'Invalid `data`'],
    ['half a character', [user(says('\ud800'))], 'lone surrogate'],
    ['half a character in a key', [user(), asks(use('a', 'add', { '\udc00': 1 })), user(result('a'))], 'lone surrogate in a key'],
    ['a role of its own for the system', [{ role: 'system', content: 's' }, user()], 'unknown role'],
    ['a role of its own for results', [user(), asks(use('a')), { role: 'tool', content: '3' }], 'unknown role'],
    ['a result that the assistant gives', [user(), asks(result('a')), user()], 'does not belong here'],
    ['a call of the user', [user(use('a'))], 'does not belong here'],
    ['a block that it does not know', [user({ type: 'image_url', image_url: { url: 'x' } })], 'does not belong here'],
    ['a field that it does not know', [user({ ...says('x'), id: 'y' })], 'unknown field id'],
    ['a field of a message that it does not know', [{ role: 'user', content: 'x', name: 'y' }], 'unknown field name'],
    ['an image with a prefix', [user(image('data:image/png;base64,AAAA'))], 'not base64'],
    ['an image of more than 5 MB', [user(image('A'.repeat(5 * 1024 * 1024 + 4)))], 'exceeds 5 MB'],
    ['an image of more than 8000 pixels', [user(image(png(9000, 100)))], 'exceed max allowed size: 8000'],
    ['an image of more than 2000 pixels among more than 20', [user(image(png(2001, 1)), ...Array.from({ length: 20 }, () => image(png(1, 1))))], 'exceed max allowed size: 2000'],
    ['an image in a result of more than 8000 pixels', [user(), asks(use('a')), user(result('a', { content: [image(png(1, 8001))] }))], 'exceed max allowed size'],
    ['an image of another type than it says', [user(image(png(1, 1), 'image/jpeg'))], 'but is png'],
    ['an image that is none', [user(image('AAAA'))], 'Could not process image'],
    ['an image of an unknown type', [user(image(png(1, 1), 'image/bmp'))], 'unknown media_type'],
  ])('refuses %s', (_, messages, words) => {
    expect(problems(messages)).toContain(words);
  });

  it.each<[string, Loose, string]>([
    ['a missing max_tokens', { max_tokens: undefined }, 'max_tokens is missing'],
    ['a max_tokens of 0', { max_tokens: 0 }, 'max_tokens is missing'],
    ['a missing model', { model: undefined }, 'model is missing'],
    ['an empty system text', { system: '' }, 'system: empty text'],
    ['an empty block of the system', { system: [says('')] }, 'empty text'],
    ['an image of the system', { system: [image(png(1, 1))] }, 'does not belong here'],
    ['a setting that it does not know', { num_ctx: 1 }, 'unknown field num_ctx'],
    ['a temperature', { temperature: 0 }, 'unknown field temperature'],
    ['five marks for the cache', { system: Array.from({ length: 5 }, () => ({ ...says('x'), cache_control: { type: 'ephemeral' } })) }, '5 blocks with cache_control'],
    ['a choice of tools without tools', { tools: undefined, tool_choice: { type: 'auto' } }, 'tool_choice without tools'],
    ['a reference that leads nowhere', { tools: [tool('add', { type: 'object', properties: { q: { $ref: '#/$defs/Q' } } })] }, 'does not resolve'],
    ['a choice at the top of a schema', { tools: [tool('add', { type: 'object', oneOf: [] })] }, 'oneOf at the top'],
    ['an illegal tool name', { tools: [tool('a.b')] }, 'illegal tool name'],
    ['two tools of one name', { tools: [tool('add'), tool('add')] }, 'not unique'],
    ['a schema that is none', { tools: [tool('add', null)] }, 'not an object schema'],
    ['a tool in the words of another wire', { tools: [{ type: 'function', function: { name: 'add', parameters: { type: 'object' } } }] }, 'unknown field function'],
  ])('refuses %s', (_, over, words) => {
    expect(problems([user()], over)).toContain(words);
  });

  it('refuses calls in a conversation whose request has no tools', () => {
    expect(problems([user(), asks(use('a')), user(result('a'))], { tools: undefined })).toContain('there are calls, but no tools');
  });

  it('refuses a call without its thought where every reply has one', () => {
    const messages = [user(), asks(says('let me see'), use('a')), user(result('a'))];
    expect(problems(messages, { thinking: { type: 'enabled', budget_tokens: 50 } })).toContain('must start with a thinking block');
    expect(problems(messages, { thinking: { type: 'adaptive' } })).toBe('');
  });
});
