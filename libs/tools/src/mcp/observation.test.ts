import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { callResultSchema, observationOf, saysError } from './observation.ts';

const png = Buffer.concat([Buffer.from('89504e470d0a1a0a', 'hex'), Buffer.from('rest')]);
const odd = Buffer.from('00fffe', 'hex');
const sha = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex');

test.each<[string, Parameters<typeof observationOf>[0], string, { media_type: string; bytes: Buffer }[]]>([
  ['text parts by line', { content: [{ type: 'text', text: 'a' }, { type: 'text', text: 'b' }] }, 'a\nb', []],
  ['structured content where there is no text', { content: [], structuredContent: { a: 1 } }, '{"a":1}', []],
  ['text alone where there are both', { content: [{ type: 'text', text: 'a' }], structuredContent: { a: 1 } }, 'a', []],
  ['an image, by its bytes', { content: [{ type: 'image', mimeType: 'image/jpeg', data: png.toString('base64') }, { type: 'text', text: 'seen' }] }, '[image: image/png, 12 bytes]\nseen', [{ media_type: 'image/png', bytes: png }]],
  ['an image beside structured content', { content: [{ type: 'image', mimeType: 'image/png', data: png.toString('base64url') }], structuredContent: { a: 1 } }, '{"a":1}\n[image: image/png, 12 bytes]', [{ media_type: 'image/png', bytes: png }]],
  ['what is called an image and is none', { content: [{ type: 'image', mimeType: 'image/png', data: odd.toString('base64') }] }, `[no image that can be shown: image/png, 3 bytes, kept as blob ${sha(odd)}]`, [{ media_type: 'application/octet-stream', bytes: odd }]],
  ['an image that is no base64', { content: [{ type: 'image', mimeType: 'image/png', data: '/etc/passwd!' }, { type: 'image', data: '' }] }, '[image left out: it cannot be read]\n[image left out: it cannot be read]', []],
  ['sound', { content: [{ type: 'audio', mimeType: 'audio/wav', data: odd.toString('base64') }] }, `[audio: audio/wav, 3 bytes, kept as blob ${sha(odd)}]`, [{ media_type: 'audio/wav', bytes: odd }]],
  ['an embedded text', { content: [{ type: 'resource', resource: { uri: 'f:1', text: 'inside' } }] }, 'inside', []],
  ['embedded bytes that are text', { content: [{ type: 'resource', resource: { uri: 'f:1', blob: Buffer.from('inside').toString('base64') } }] }, 'inside', []],
  ['embedded bytes', { content: [{ type: 'resource', resource: { uri: 'f:2', mimeType: 'application/pdf', blob: odd.toString('base64') } }] }, `[resource f:2: application/pdf, 3 bytes, kept as blob ${sha(odd)}]`, [{ media_type: 'application/pdf', bytes: odd }]],
  ['an embedded image', { content: [{ type: 'resource', resource: { uri: 'f:3', blob: png.toString('base64') } }] }, '[image: image/png, 12 bytes]', [{ media_type: 'image/png', bytes: png }]],
  ['embedded nothing', { content: [{ type: 'resource', resource: { uri: 'f:4' } }, { type: 'resource', resource: { blob: '*' } }] }, '[resource f:4 left out: there is nothing in it]\n[resource left out: it cannot be read]', []],
  ['a link', { content: [{ type: 'resource_link', uri: 'file:///a', name: 'a' }] }, '[link to a file:///a]', []],
  ['odd parts', { content: [null, 5, { type: 'hologram' }] }, '[a part of an unknown kind left out]\n[a part of an unknown kind left out]\n[a part of an unknown kind left out]', []],
  ['nothing', {}, '(no result)', []],
  ['nothing, said', { content: null, structuredContent: null }, '(no result)', []],
  ['a text that is no list', { content: 'said' }, 'said', []],
  ['a part that is no list', { content: { type: 'text', text: 'said' } }, 'said', []],
  ['texts that are no parts', { content: ['a', 'b'] }, 'a\nb', []],
  ['names that resist being read', { content: [{ type: 'resource_link', name: { toString: 1 }, uri: [] }, { type: 'resource', resource: { uri: { toString: 1 } } }] }, '[link to  ]\n[resource left out: there is nothing in it]', []],
  ['structured content without an end', { structuredContent: JSON.parse('{"a":'.repeat(20_000) + '1' + '}'.repeat(20_000)) as unknown }, '[structured content left out: it is nested too deeply]', []],
])('a result is observed: %s', (_name, result, content, attachments) => {
  expect(observationOf(result)).toEqual({ content, attachments });
});

test.each<[unknown, boolean]>([[true, true], ['true', true], [1, true], [false, false], ['false', false], [null, false], [undefined, false], [0, false], [{}, false]])('isError: %j is read as %s', (isError, expected) => {
  expect(saysError(callResultSchema.parse({ isError, content: 5 }))).toBe(expected);
});
