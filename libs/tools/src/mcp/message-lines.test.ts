import { expect, test } from 'vitest';
import { MessageLines, messageOf } from './message-lines.ts';

const read = (message: object) => messageOf(JSON.stringify(message));
const answer = { jsonrpc: '2.0', id: 3, result: { content: [] } };

test.each<[string, object, object]>([
  ['as it should be', answer, answer],
  ['with an error that is null', { ...answer, error: null }, answer],
  ['with a field too many', { ...answer, took_ms: 3 }, answer],
  ['without its version', { id: 3, result: { content: [] } }, answer],
  ['with meta that is none', { ...answer, result: { content: [], _meta: 5 } }, answer],
  ['with an error and a result', { ...answer, error: { code: 7, message: 'no' } }, { jsonrpc: '2.0', id: 3, error: { code: 7, message: 'no' } }],
  ['with an error of no number', { jsonrpc: '2.0', id: 3, error: { code: 'x', message: 'no' } }, { jsonrpc: '2.0', id: 3, error: { code: -32603, message: 'no' } }],
  ['with an error that is a text', { jsonrpc: '2.0', id: 3, error: 'boom' }, { jsonrpc: '2.0', id: 3, error: { code: -32603, message: 'boom' } }],
  ['with an error without words', { jsonrpc: '2.0', id: 3, error: { code: 5 } }, { jsonrpc: '2.0', id: 3, error: { code: 5, message: '{"code":5}' } }],
  ...['text', null, [1], undefined].map((result): [string, object, object] => [
    `with a result that is ${JSON.stringify(result)}`, { jsonrpc: '2.0', id: 3, result }, { jsonrpc: '2.0', id: 3, error: { code: -32603, message: 'its answer cannot be read' } }]),
])('an answer %s is one', (_, message, expected) => {
  expect(read(message)).toEqual(expected);
});

test.each<[string, string]>([
  ['no JSON', 'listening on port 3'], ['no object', '5'], ['a list', '[]'], ['nothing', '{}'], ['an answer to nobody', '{"jsonrpc":"2.0","id":null,"result":{}}'], ['a broken request', '{"jsonrpc":"2.0","id":1,"method":5}'],
])('%s is no message', (_, line) => {
  expect(() => messageOf(line)).toThrow();
});

test('a byte order mark before a message is none of it', () => {
  expect(messageOf(`\uFEFF${JSON.stringify(answer)}`)).toEqual(answer);
});

test('lines come whole, however they are cut, in UTF-8', () => {
  const whole = Buffer.from('{"a":"é🌍"}\r\n\nsecond\nrest');
  for (let size = 1; size <= whole.length; size++) {
    const lines = new MessageLines(1000);
    const seen: string[] = [];
    for (let from = 0; from < whole.length; from += size) seen.push(...lines.append(whole.subarray(from, from + size)));
    expect(seen).toEqual(['{"a":"é🌍"}', '', 'second']);
  }
});

test('no line is longer than its bound, and many short ones are none', () => {
  const lines = new MessageLines(10);
  expect(lines.append(Buffer.from('0123456789\n'.repeat(100)))).toHaveLength(100);
  lines.append(Buffer.from('012345'));
  expect(() => lines.append(Buffer.from('67890'))).toThrow('a message is longer than 10 bytes');
});
