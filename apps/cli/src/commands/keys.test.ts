import { describe, expect, test, vi } from 'vitest';
import { answeringApi } from '../fixtures/answering-api.ts';
import { keysCommand } from './keys.ts';

const key = { id: 'key_1', tenant: 'acme', scopes: ['read', 'write'], name: 'backend', created_at: '2030-01-01T00:00:00.000Z', expires_at: null };
const api = answeringApi({ status: 200, body: key });

describe('keys', () => {
  test.each<[string[], unknown]>([
    [[], {}],
    [['--tenant', 'acme', '--scope', 'read', '--scope', 'write', '--name', 'backend', '--expires', '2031-01-01T00:00:00Z'], { tenant: 'acme', scopes: ['read', 'write'], name: 'backend', expires_at: '2031-01-01T00:00:00Z' }],
    [['--expires', '30d'], { expires_at: '2030-01-31T00:00:00.000Z' }],
    [['--expires', '12h'], { expires_at: '2030-01-01T12:00:00.000Z' }],
  ])('create %j', async (args, body) => {
    vi.spyOn(Date, 'now').mockReturnValue(Date.UTC(2030, 0, 1));
    api.answer = { status: 201, body: { ...key, key: 'tk_secret' } };
    expect(await keysCommand(['create', ...args])).toBe(0);
    expect(api.asked).toEqual([{ method: 'POST', url: '/v1/keys', body }]);
    expect(api.printed).toBe('key_1  acme  read,write  never expires  backend\ntk_secret\nKeep it: it is shown this once.\n');
  });

  test('ls prints a line each, and how to go on', async () => {
    api.answer = { status: 200, body: { data: [key, { ...key, id: 'key_2', name: null, expires_at: '2031-01-01T00:00:00.000Z' }], next_cursor: 'c1' } };
    expect(await keysCommand(['ls', '--tenant', 'acme', '--limit', '2', '--cursor', 'c0'])).toBe(0);
    expect(api.asked).toMatchObject([{ method: 'GET', url: '/v1/keys?tenant=acme&limit=2&cursor=c0' }]);
    expect(api.printed).toBe('key_1  acme  read,write  never expires  backend\nkey_2  acme  read,write  until 2031-01-01T00:00:00.000Z\nmore: --cursor c1\n');
  });

  test('revoke', async () => {
    api.answer = { status: 200, body: { id: 'key_1', revoked: true } };
    expect(await keysCommand(['revoke', 'key_1'])).toBe(0);
    expect(api.asked).toMatchObject([{ method: 'DELETE', url: '/v1/keys/key_1' }]);
    expect(api.printed).toBe('key_1 is revoked\n');
  });

  test('--json prints the answer', async () => {
    api.answer = { status: 201, body: { ...key, key: 'tk_secret' } };
    await keysCommand(['create', '--json']);
    expect(JSON.parse(api.printed)).toEqual({ ...key, key: 'tk_secret' });
  });

  test.each([[[]], [['make']], [['create', 'x']], [['revoke']], [['revoke', 'key_1', '--tenant', 'a']], [['ls', '--name', 'n']], [['create', '--limit', '1']]])('what makes no sense asks nothing: %j', async (args) => {
    await expect(keysCommand(args)).rejects.toThrow('usage: treadle keys create');
    expect(api.asked).toEqual([]);
  });
});
