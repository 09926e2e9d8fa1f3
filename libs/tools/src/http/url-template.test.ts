import { expect, test } from 'vitest';
import { fillUrl, withQuery } from './url-template.ts';

const base = 'https://api.example/v1';

test.each<[string, Record<string, unknown>, string, Record<string, unknown>]>([
  ['/items/{id}', { id: 'a b/c?d#e&f' }, '/items/a%20b%2Fc%3Fd%23e%26f', {}],
  ['/items/{id}', { id: '../secrets' }, '/items/..%2Fsecrets', {}],
  ['/items/{id}?q={q}', { id: 7, q: 'x&admin=1', other: true }, '/items/7?q=x%26admin%3D1', { other: true }],
  ['/items/{id}', { id: 'ü🌍\ud800' }, '/items/%C3%BC%F0%9F%8C%8D%EF%BF%BD', {}],
  ['/items/{a}{b}', { a: '1', b: false }, '/items/1false', {}],
  ['/items?q={q}', { q: '' }, '/items?q=', {}],
  ['/items?q={q}', { q: '..' }, '/items?q=..', {}],
  ['/plain', { a: 1 }, '/plain', { a: 1 }],
])('%s is filled with %j', (template, input, path, rest) => {
  const filled = fillUrl(base + template, input);
  expect(filled).toMatchObject({ type: 'ok', rest });
  expect(filled.type === 'ok' && filled.url.href).toBe(base + path);
});

test.each<[string, Record<string, unknown>, RegExp]>([
  ['/items/{id}', {}, /"id" must be text/], ['/items/{id}', { id: null }, /"id" must be text/], ['/items/{id}', { id: { a: 1 } }, /"id" must be text/], ['/items/{id}', { id: ['x'] }, /"id" must be text/],
  ['/items/{id}', { id: '..' }, /another path/], ['/items/{id}', { id: '.' }, /another path/], ['/items/.{id}', { id: '.' }, /another path/], ['/items/{id}/x', { id: '..' }, /another path/],
  ['/items/{id}/delete', { id: '' }, /may not be empty/], ['/items/{constructor}', {}, /"constructor" must be text/],
])('%s does not take %j', (template, input, why) => {
  expect(fillUrl(base + template, input)).toMatchObject({ type: 'unfit', why: expect.stringMatching(why) as string });
});

test('other arguments become the query', () => {
  expect(withQuery(new URL('https://x.example/?a=0'), { b: 'x y', c: [1, 2], d: { e: 1 }, f: null, g: true }).search).toBe('?a=0&b=x+y&c=1&c=2&d=%7B%22e%22%3A1%7D&g=true');
});
