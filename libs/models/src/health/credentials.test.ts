import { expect, test } from 'vitest';
import { CredentialPool, type CredentialStrategy } from './credentials.ts';

const pool = (strategy: CredentialStrategy, ...keys: string[]) => new CredentialPool({ model_name: 'small', provider: 'openai', base_url: 'https://a.example/v1', keys, strategy });
const keysOf = (from: CredentialPool, benched: (target: string) => boolean, times: number) => Array.from({ length: times }, () => from.choose(benched)?.key);

test('fill_first stays with the first key that is not benched', () => {
  const keys = pool('fill_first', 'a', 'b', 'c');
  const [a, b] = keys.credentials;
  expect(keysOf(keys, () => false, 3)).toEqual(['a', 'a', 'a']);
  expect(keysOf(keys, (target) => target === a!.target, 2)).toEqual(['b', 'b']);
  expect(keysOf(keys, (target) => target === a!.target || target === b!.target, 1)).toEqual(['c']);
});

test('round_robin goes from key to key, past those that are benched', () => {
  const keys = pool('round_robin', 'a', 'b', 'c');
  expect(keysOf(keys, () => false, 4)).toEqual(['a', 'b', 'c', 'a']);
  expect(keysOf(keys, (target) => target === keys.credentials[1]!.target, 3)).toEqual(['c', 'a', 'c']);
});

test('with all benched there is none; as the last resort the one that is free first', () => {
  const keys = pool('fill_first', 'a', 'b');
  expect(keys.choose(() => true)).toBeNull();
  expect(keys.lastResort((target) => (target === keys.credentials[1]!.target ? 5 : 9)).key).toBe('b');
});

test('a key is named by a fingerprint that is the same for every model at its host, and does not show it', () => {
  const names = (model_name: string, base_url: string, provider = 'openai') => new CredentialPool({ model_name, provider, base_url, keys: ['sk-secret'], strategy: 'fill_first' }).credentials[0]!.target;
  expect(names('small', 'https://a.example/v1')).toMatch(/^credential:[0-9a-f]{12}$/);
  expect(names('big', 'https://a.example/v2')).toBe(names('small', 'https://a.example/v1'));
  expect(names('small', 'https://b.example/v1')).not.toBe(names('small', 'https://a.example/v1'));
});

test('a model without keys is to blame itself', () => {
  expect(pool('fill_first').credentials).toEqual([{ key: undefined, target: 'model:small' }]);
});
