import { expect, test } from 'vitest';
import { checkConfig, environmentSecrets, readEnvironment, webhookEndpoints } from './index.ts';

const secretOf = (letter: string, bytes = 32): string => `whsec_${Buffer.from(letter.repeat(bytes)).toString('base64')}`;
const [one, two, three] = ['a', 'b', 'c'].map((letter) => secretOf(letter)) as [string, string, string];
const withWebhooks = (webhooks: unknown) => ({ models: { m: { provider: 'ollama', model: 'm' } }, chains: { default: { models: ['m'] } }, agents: { a: { instructions: 'x' } }, webhooks });

function problemsAt(webhooks: unknown): string[] {
  const outcome = checkConfig(withWebhooks(webhooks), {});
  return outcome.type === 'ok' ? [] : outcome.problems.map(({ path, problem }) => `${path}: ${problem}`);
}

test('an endpoint has an address and a secret, which comes from the environment; all that is secret of it is known', () => {
  const url = 'https://backend.example/hook?token=of-the-url';
  const outcome = checkConfig(withWebhooks({ backend: { url, secret: 'env:NEW', previous_secret: two, headers: { 'x-api-key': 'written-key', 'x-team': 'blue' } }, 'other-one': { url: 'http://10.0.0.1/', secret: three } }), { NEW: one });
  if (outcome.type === 'invalid') throw new Error(JSON.stringify(outcome.problems));
  expect(webhookEndpoints(outcome.config).backend).toEqual({ url, secret: one, previous_secret: two, headers: { 'x-api-key': 'written-key', 'x-team': 'blue' } });
  expect(webhookEndpoints(outcome.config)['other-one']).toMatchObject({ headers: {} });
  expect([...outcome.config.secrets].sort()).toEqual([...[one, two, three].flatMap((secret) => [secret, secret.slice(6)]), 'written-key', 'of-the-url'].sort());
});

test('what is wrong is said at its place, without the value', () => {
  expect(problemsAt({ backend: { url: 'ftp://x', secret: 'hunter2' }, short: { url: 'https://a.example/', secret: secretOf('x', 23) }, none: { url: 'https://u:p@a.example/' }, other: { url: 'https://a.example/', secret: one, previous_secret: 'env:GONE', events: [] } }).sort()).toEqual([
    'webhooks.backend.secret: expected whsec_ and base64 of 24 to 64 bytes', 'webhooks.backend.url: expected an http or https URL', 'webhooks.none.secret: missing; expected string',
    'webhooks.none.url: expected a URL without user and password; send them in headers', 'webhooks.other.events: unknown key', 'webhooks.other.previous_secret: the environment variable GONE is not set',
    'webhooks.short.secret: expected whsec_ and base64 of 24 to 64 bytes',
  ].sort());
});

test('the environment has a secret for all other addresses, and the one before it', () => {
  const outcome = readEnvironment({ TREADLE_WEBHOOK_SECRET: one, TREADLE_WEBHOOK_PREVIOUS_SECRET: two, TREADLE_WEBHOOK_RETRY_MS: '20' });
  expect(outcome).toMatchObject({ settings: { webhookSecret: one, webhookPreviousSecret: two, webhookRetryMs: 20, webhookTimeoutMs: 15_000 } });
  expect(environmentSecrets({ TREADLE_WEBHOOK_SECRET: one })).toEqual([one, one.slice(6)]);
  const bad = readEnvironment({ TREADLE_WEBHOOK_SECRET: 'hunter2hunter2', TREADLE_WEBHOOK_PREVIOUS_SECRET: two });
  expect(bad).toEqual({ type: 'invalid', problems: [{ name: 'TREADLE_WEBHOOK_SECRET', problem: 'expected whsec_ and base64 of 24 to 64 bytes' }] });
  expect(readEnvironment({ TREADLE_WEBHOOK_PREVIOUS_SECRET: two })).toMatchObject({ type: 'invalid', problems: [{ name: 'TREADLE_WEBHOOK_SECRET' }] });
});
