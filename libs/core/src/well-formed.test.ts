/** JSON data without lone surrogates; texts that are cut are tested where they are cut (test/cases/bytes.test.ts). */
import { expect, test } from 'vitest';
import { wellFormed } from './well-formed.ts';

const nested = (leaf: unknown, depth: number): unknown => Array.from({ length: depth }).reduce<unknown>((inner, _, at) => (at % 2 === 0 ? [inner, 'x'] : { inner, other: 1 }), leaf);

test('halves of characters are replaced in keys and values, at any depth, and nothing else is changed', () => {
  const odd = { 'a\ud800': 1, list: ['\udc00', { deep: 'x\ud83d' }, null, 0, '🧵'], constructor: 'kept' };
  expect(wellFormed(odd)).toEqual({ 'a\ufffd': 1, list: ['\ufffd', { deep: 'x\ufffd' }, null, 0, '🧵'], constructor: 'kept' });
  expect(JSON.stringify(odd)).toContain('ud800');
  // Each level is gone through once: twice at each would be for ever.
  expect(wellFormed(nested('\ud800', 60))).toEqual(nested('\ufffd', 60));
  expect(wellFormed(nested('x', 70), 64)).not.toEqual(nested('x', 70));
});

test('what is as it should be is given back as it is', () => {
  const fine = nested({ text: '🧵', list: [1, null, true] }, 8);
  expect(wellFormed(fine)).toBe(fine);
  const half = { good: fine, bad: '\ud800' };
  expect(wellFormed(half).good).toBe(fine);
});
