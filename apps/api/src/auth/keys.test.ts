import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { createKeyTable, loadKeys, mayUse } from './keys.ts';

const hash = (token: string) => createHash('sha256').update(token).digest('hex');
const entry = { key_sha256: hash('tk_one'), tenant: 'alpha', scopes: ['read'] };

describe('loading keys', () => {
  test('takes the admin key and the file, or neither', () => {
    expect(loadKeys({ adminKey: null, keysFileText: null })).toEqual({ type: 'ok', keys: [] });
    const file = JSON.stringify([{ ...entry, key_sha256: entry.key_sha256.toUpperCase(), expires_at: '2030-01-01T00:00:00Z', name: 'ci' }]);
    expect(loadKeys({ adminKey: 'tk_admin_key', keysFileText: file })).toEqual({ type: 'ok', keys: [
      { key_sha256: hash('tk_admin_key'), tenant: 'default', scopes: ['admin'], expires_at_ms: null, name: 'TREADLE_ADMIN_KEY' },
      { key_sha256: entry.key_sha256, tenant: 'alpha', scopes: ['read'], expires_at_ms: Date.parse('2030-01-01T00:00:00Z'), name: 'ci' },
    ] });
  });

  test('lists every fault at once with its place, and repeats no key', () => {
    const bad = [{ ...entry, key_sha256: 'tk_in_clear' }, { ...entry, scopes: ['root'] }, { ...entry, scopes: [] }, { ...entry, tenant: 'a b' },
      { ...entry, expires_at: 'soon' }, { ...entry, colour: 'red' }];
    const outcome = loadKeys({ adminKey: 'with space tk_x', keysFileText: JSON.stringify(bad) });
    if (outcome.type !== 'invalid') throw new Error('must be invalid');
    expect(outcome.problems.map((problem) => problem.path)).toEqual(
      ['TREADLE_ADMIN_KEY', '0.key_sha256', '1.scopes.0', '2.scopes', '3.tenant', '4.expires_at', '5.colour']);
    expect(JSON.stringify(outcome)).not.toContain('tk_');
  });

  test.each(['', 'no json', '{}', '"x"', 'null'])('refuses a file that is not a JSON list: %s', (keysFileText) => {
    expect(loadKeys({ adminKey: null, keysFileText }).type).toBe('invalid');
  });

  test('refuses one key for two tenants', () => {
    expect(loadKeys({ adminKey: null, keysFileText: JSON.stringify([entry, { ...entry, tenant: 'beta' }]) }).type).toBe('invalid');
  });
});

describe('the key table', () => {
  const table = createKeyTable([{ ...entry, scopes: ['read'], expires_at_ms: 1000, name: null }]);

  test('finds a key by its text, until it expires', () => {
    expect(table.find('tk_one', 999)).toEqual({ tenant: 'alpha', scopes: ['read'], name: null, expires_at_ms: 1000 });
    expect(table.find('tk_one', 1000)).toBeNull();
    expect(table.find('tk_two', 0)).toBeNull();
    expect(table.find(entry.key_sha256, 0)).toBeNull();
  });

  test('admin implies the other scopes, and they imply nothing', () => {
    const may = (held: 'read' | 'write' | 'admin') => (['read', 'write', 'admin'] as const).filter((scope) => mayUse({ tenant: 't', scopes: [held], name: null, expires_at_ms: null }, scope));
    expect([may('read'), may('write'), may('admin')]).toEqual([['read'], ['write'], ['read', 'write', 'admin']]);
  });
});
