import { expect, test } from 'vitest';
import { checkConfig, environmentSecrets } from './index.ts';

const minimal = { agents: { a: { instructions: 'x', chain: 'default' } }, chains: { default: { models: ['m'] } } };

function secretsOf(parts: Record<string, unknown>, env: Record<string, string> = {}): readonly string[] {
  const outcome = checkConfig({ ...minimal, models: { m: { provider: 'ollama', model: 'm' } }, ...parts }, env);
  if (outcome.type === 'invalid') throw new Error(JSON.stringify(outcome.problems));
  return outcome.config.secrets;
}

test('what is written into the configuration where only secrets belong counts, and what else stands there does not', () => {
  const found = secretsOf({
    models: { m: { provider: 'ollama', model: 'm', base_url: 'http://127.0.0.1:1', credentials: ['sk-written', 'env:KEY'] } },
    mcp_servers: { files: { command: 'node', args: ['x'], env: { API_TOKEN: 'written-token', REGION: 'eu-west' } }, web: { url: 'https://web.example/mcp', headers: { authorization: 'Bearer behind-bearer', accept: 'text/plain' } } },
    http_tools: { look: { url: 'https://look.example/', headers: { 'x-api-key': 'written-header' } } },
  }, { KEY: 'sk-from-env' });
  expect([...found].sort()).toEqual(['Bearer behind-bearer', 'behind-bearer', 'sk-from-env', 'sk-written', 'written-header', 'written-token']);
});

test('of an address that a tool or a server has, what its query calls a key counts; of one that came from the environment every value does', () => {
  const found = secretsOf({
    mcp_servers: { web: { url: 'https://web.example/mcp?token=of-the%20server&page=one' } },
    http_tools: { look: { url: 'https://look.example/{id}?api_key=written-key&lang=en&token={token}', input_schema: { type: 'object', properties: { id: { type: 'string' }, token: { type: 'string' } }, required: ['id', 'token'] } }, find: { url: 'env:FIND' } },
  }, { FIND: 'https://find.example/?k=from-env&lang=de' });
  expect([...found].sort()).toEqual(['de', 'from-env', 'https://find.example/?k=from-env&lang=de', 'of-the server', 'of-the%20server', 'written-key'].sort());
});

test('of an address the password counts alone, as it is written and as it is sent; so do both halves of Basic', () => {
  expect(environmentSecrets({ REDIS_URL: 'redis://user:p%40ss-word@h:6379/0' })).toEqual(['redis://user:p%40ss-word@h:6379/0', 'p%40ss-word', 'p@ss-word']);
  expect(environmentSecrets({ REDIS_URL: 'redis-sentinel://:pass-word@h1,h2/master' })).toContain('pass-word');
  const basic = Buffer.from('me:my-password').toString('base64');
  expect(secretsOf({ mcp_servers: { web: { url: 'https://web.example/', headers: { authorization: `Basic ${basic}` } } } })).toEqual([`Basic ${basic}`, basic, 'me:my-password', 'my-password']);
});
