/** N1 and N2 of the port `KeyDirectory`, for the double and for Redis alike. */
import type { IssuedKey, KeyDirectory } from '@treadle/engine';
import { beforeEach, describe, expect, test } from 'vitest';

const always = { not_after_ms: 9_999_999_999_999, most: 3 };

export function keyDirectoryConformance(name: string, factory: () => KeyDirectory): void {
  describe(`key directory: ${name}`, () => {
    let keys: KeyDirectory;
    beforeEach(() => { keys = factory(); });

    let made = 0;
    function someKey(over: Partial<IssuedKey> = {}): Omit<IssuedKey, 'created_at_ms'> {
      const digits = String(++made).padStart(4, '0');
      return { id: `key_${digits}`, key_sha256: digits.repeat(16), tenant: 'acme', scopes: ['read', 'write'], name: 'ci "ß"', expires_at_ms: null, ...over };
    }
    const issued = async (over: Partial<IssuedKey> = {}): Promise<IssuedKey> => {
      const key = someKey(over);
      const reply = await keys.issue({ ...key, ...always });
      if (reply.type !== 'issued') throw new Error(reply.type);
      return { ...key, created_at_ms: reply.created_at_ms };
    };

    test('a key is found by its hash and its id, whole', async () => {
      const key = await issued({ expires_at_ms: 5, name: null });
      expect([await keys.find(key.key_sha256), await keys.get(key.id)]).toEqual([key, key]);
      expect([await keys.find('0'.repeat(64)), await keys.get('key_none'), await keys.find(key.id), await keys.get(key.key_sha256)]).toEqual([null, null, null, null]);
    });

    test('N1: issued again it is the first one, and after its time it is not issued', async () => {
      const first = await issued();
      expect(await keys.issue({ ...first, name: 'another', ...always, not_after_ms: 0, most: 0 })).toEqual({ type: 'issued', created_at_ms: first.created_at_ms });
      expect(await keys.get(first.id)).toEqual(first);
      const late = someKey();
      expect(await keys.issue({ ...late, ...always, not_after_ms: 1 })).toEqual({ type: 'too_late' });
      expect(await keys.find(late.key_sha256)).toBeNull();
    });

    test('N2: one hash is one key, until it is revoked', async () => {
      const first = await issued();
      const again = someKey({ key_sha256: first.key_sha256, tenant: 'beta' });
      expect(await keys.issue({ ...again, ...always })).toEqual({ type: 'taken' });
      expect(await keys.revoke({ id: first.id, tenant: 'beta', ...always })).toBe('missing');
      expect(await keys.revoke({ id: first.id, tenant: 'acme', not_after_ms: 1 })).toBe('too_late');
      expect(await keys.find(first.key_sha256)).toEqual(first);
      expect(await keys.revoke({ id: first.id, tenant: 'acme', ...always })).toBe('revoked');
      expect([await keys.find(first.key_sha256), await keys.get(first.id)]).toEqual([null, null]);
      expect(await keys.revoke({ id: first.id, tenant: 'acme', ...always })).toBe('missing');
      expect(await keys.issue({ ...again, ...always })).toMatchObject({ type: 'issued' });
    });

    test('a tenant has so many', async () => {
      for (let each = 0; each < always.most; each++) await issued();
      expect(await keys.issue({ ...someKey(), ...always })).toEqual({ type: 'too_many' });
      expect(await keys.issue({ ...someKey({ tenant: 'beta' }), ...always })).toMatchObject({ type: 'issued' });
    });

    test('they are listed newest first, page by page, of a tenant or of all', async () => {
      const [one, two, other, three] = [await issued(), await issued(), await issued({ tenant: 'beta' }), await issued()];
      expect(await keys.list({ tenant: 'acme', before_id: null, limit: 2 })).toEqual({ keys: [three, two], next_before_id: two.id });
      expect(await keys.list({ tenant: 'acme', before_id: two.id, limit: 1 })).toEqual({ keys: [one], next_before_id: null });
      expect(await keys.list({ tenant: null, before_id: null, limit: 9 })).toEqual({ keys: [three, other, two, one], next_before_id: null });
      await keys.revoke({ id: three.id, tenant: 'acme', ...always });
      expect((await keys.list({ tenant: null, before_id: null, limit: 9 })).keys).toEqual([other, two, one]);
      expect((await keys.list({ tenant: 'acme', before_id: null, limit: 9 })).keys).toEqual([two, one]);
    });
  });
}
