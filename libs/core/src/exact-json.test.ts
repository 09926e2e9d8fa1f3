import { expect, test } from 'vitest';
import { inexactNumber, inexactProblem, parseExactly } from './exact-json.ts';

test.each(['{"a":[1,{"b":9007199254740993}]}', '{"a":-123456789012345678901}', '{"a":1e999}'])('%s is kept as it is, and the number is found', (text) => {
  const value = parseExactly(text);
  expect(JSON.stringify(value)).toBe(text);
  expect(text).toContain(inexactNumber(value));
  expect(inexactProblem(value)).toContain('is too large to be passed on as it is');
});

test.each(['{"a":9007199254740992}', '{"a":1e20,"b":0.12345678901234567890}', '{"9007199254740993":"9007199254740993"}', '5', 'null'])('%s is read as ever', (text) => {
  expect(parseExactly(text)).toEqual(JSON.parse(text));
  expect(inexactProblem(parseExactly(text))).toBeNull();
});

test('what is not JSON throws, and what is very long is not looked at value by value', () => {
  expect(() => parseExactly('{"a":1e5')).toThrow(SyntaxError);
  expect(inexactNumber(parseExactly(`[9007199254740993${',1'.repeat(600_000)}]`))).toBeNull();
});
