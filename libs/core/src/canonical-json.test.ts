import { expect, test } from 'vitest';
import { canonicalJson } from './canonical-json.ts';

test('the order of keys does not matter, at any depth; that of lists does', () => {
  expect(canonicalJson({ b: [{ y: 1, x: 2 }], a: null })).toBe('{"a":null,"b":[{"x":2,"y":1}]}');
  expect(canonicalJson({ a: null, b: [{ x: 2, y: 1 }] })).toBe(canonicalJson({ b: [{ y: 1, x: 2 }], a: null }));
  expect(canonicalJson([1, 2])).not.toBe(canonicalJson([2, 1]));
  expect(canonicalJson(undefined)).toBe('null');
});
