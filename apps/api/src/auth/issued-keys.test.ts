import type { IssuedKey } from '@treadle/engine';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { hashOf, IssuedKeys } from './issued-keys.ts';

const token = `tk_${'a'.repeat(43)}`;
const key: IssuedKey = { id: 'key_1', key_sha256: hashOf(token), tenant: 'acme', scopes: ['read'], name: 'ci', created_at_ms: 0, expires_at_ms: 1000 };
const principal = { tenant: 'acme', scopes: ['read'], name: 'ci', expires_at_ms: 1000 };

let present: IssuedKey | null;
let fails: boolean;
let looks: string[];
let keys: IssuedKeys;
beforeEach(() => {
  vi.useFakeTimers({ toFake: ['performance'] });
  [present, fails, looks] = [key, false, []];
  keys = new IssuedKeys({ find: async (hash) => {
    looks.push(hash);
    if (fails) throw new Error('away');
    return hash === present?.key_sha256 ? present : null;
  } });
});
afterEach(() => { vi.useRealTimers(); });

test('a key is looked for once in two seconds, by its hash', async () => {
  expect(await Promise.all([keys.find(token, 0), keys.find(token, 999)])).toEqual([principal, principal]);
  vi.advanceTimersByTime(1999);
  expect(await keys.find(token, 0)).toEqual(principal);
  expect(looks).toEqual([hashOf(token)]);
  vi.advanceTimersByTime(1);
  await keys.find(token, 0);
  expect(looks).toHaveLength(2);
});

test('it expires at its time, whatever is remembered', async () => {
  expect([await keys.find(token, 999), await keys.find(token, 1000)]).toEqual([principal, null]);
});

test('one that was revoked is unknown two seconds later, or at once where it was revoked', async () => {
  await keys.find(token, 0);
  present = null;
  expect(await keys.find(token, 0)).toEqual(principal);
  vi.advanceTimersByTime(2000);
  expect(await keys.find(token, 0)).toBeNull();
  present = key;
  keys.forget(key.key_sha256);
  expect(await keys.find(token, 0)).toEqual(principal);
});

test('a store that does not answer is no answer, and is asked again', async () => {
  fails = true;
  await expect(keys.find(token, 0)).rejects.toThrow('away');
  fails = false;
  expect(await keys.find(token, 0)).toEqual(principal);
});

test.each(['', 'tk_', 'tk_short', `tk_${'a'.repeat(44)}`, `sk_${'a'.repeat(43)}`, `tk_${'a'.repeat(42)} `, hashOf(token)])('what is no key of ours is not looked for: %s', async (text) => {
  expect([await keys.find(text, 0), looks]).toEqual([null, []]);
});

test('only so many are remembered', async () => {
  const another = (n: number): string => `tk_${String(n).padStart(43, '0')}`;
  await keys.find(token, 0);
  for (let n = 0; n < 10_000; n++) await keys.find(another(n), 0);
  await keys.find(another(9999), 0);
  expect(looks).toHaveLength(10_001);
  await keys.find(token, 0);
  expect(looks).toHaveLength(10_002);
});
