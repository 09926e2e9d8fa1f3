import { expect, test } from 'vitest';
import { resultText } from './result-text.ts';

test.each<[string, Parameters<typeof resultText>[0], string]>([
  ['text parts by line', { content: [{ type: 'text', text: 'a' }, { type: 'text', text: 'b' }] }, 'a\nb'],
  ['structured content where there is no text', { content: [], structuredContent: { a: 1 } }, '{"a":1}'],
  ['text alone where there are both', { content: [{ type: 'text', text: 'a' }], structuredContent: { a: 1 } }, 'a'],
  ['a note for an image', { content: [{ type: 'image', mimeType: 'image/png', data: 'x' }, { type: 'text', text: 'seen' }] }, '[image (image/png) left out]\nseen'],
  ['an embedded text, and a note for a binary', { content: [{ type: 'resource', resource: { uri: 'f:1', text: 'inside' } }, { type: 'resource', resource: { uri: 'f:2', blob: 'x' } }] }, 'inside\n[resource f:2 left out]'],
  ['a link', { content: [{ type: 'resource_link', uri: 'file:///a', name: 'a' }] }, '[link to a file:///a]'],
  ['odd parts', { content: [null, 5, { type: 'hologram' }] }, '[a part of an unknown kind left out]\n[a part of an unknown kind left out]\n[a part of an unknown kind left out]'],
  ['nothing', {}, '(no result)'],
])('a result becomes text: %s', (_name, result, text) => {
  expect(resultText(result)).toBe(text);
});
