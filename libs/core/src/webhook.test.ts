import { expect, test } from 'vitest';
import { isWebhookSecret, mostWebhookAttempts, runOfWebhook, shownAddress, webhookId, webhookOutcome, type WebhookAnswer } from './webhook.ts';

const timing = { first_wait_ms: 5000, jitter: 0.5 };
const status = (code: number, retry_after_ms: number | null = null): WebhookAnswer => ({ type: 'answered', status: code, retry_after_ms });
const broke: WebhookAnswer = { type: 'failed', why: 'the connection broke' };

test.each([200, 201, 202, 204, 299])('%i is delivered, at any attempt', (code) => {
  for (const tries of [0, 10, 100]) expect(webhookOutcome(status(code), tries, timing)).toEqual({ type: 'delivered' });
});

test.each([100, 199, 300, 301, 302, 307, 400, 401, 404, 409, 429, 500, 502, 503, 504])('%i is tried again', (code) => {
  expect(webhookOutcome(status(code), 0, timing)).toEqual({ type: 'retry', delay_ms: 5000 });
});

test('410 is dead at once', () => {
  expect(webhookOutcome(status(410), 0, timing)).toEqual({ type: 'dead' });
});

test('the schedule ends after about a day, and then the delivery is dead', () => {
  const waits = Array.from({ length: mostWebhookAttempts - 1 }, (_, tries) => webhookOutcome(broke, tries, timing)).map((outcome) => outcome.type === 'retry' ? outcome.delay_ms : Number.NaN);
  expect(waits.map((ms) => ms / 1000)).toEqual([5, 30, 120, 600, 1800, 3600, 7200, 14_400, 21_600, 36_000]);
  expect(waits.reduce((sum, ms) => sum + ms, 0) / 3_600_000).toBeCloseTo(23.7, 1);
  expect(webhookOutcome(broke, mostWebhookAttempts - 1, timing)).toEqual({ type: 'dead' });
});

test('waits differ by a tenth either way, and grow with the first', () => {
  expect([0, 0.999_999].map((jitter) => webhookOutcome(broke, 1, { first_wait_ms: 5000, jitter }))).toEqual([{ type: 'retry', delay_ms: 27_000 }, { type: 'retry', delay_ms: 33_000 }]);
  expect(webhookOutcome(broke, 9, { first_wait_ms: 10, jitter: 0.5 })).toEqual({ type: 'retry', delay_ms: 72_000 });
});

test.each([
  [429, 60_000, 60_000], [503, 60_000, 60_000], [503, 1, 5000], [429, 1e12, 36_000_000], [500, 60_000, 5000], [302, 60_000, 5000],
])('%i that asks for %i ms is asked again after %i', (code, asked, delay_ms) => {
  expect(webhookOutcome(status(code, asked), 0, timing)).toEqual({ type: 'retry', delay_ms });
});

test('a delivery is known by its run, and the other way round', () => {
  const run_id = 'run_0193f0c0a0007000800000000000aa01';
  expect(webhookId(run_id)).toBe('msg_0193f0c0a0007000800000000000aa01');
  expect(runOfWebhook(webhookId(run_id))).toBe(run_id);
  for (const wrong of ['', 'msg_', run_id, 'msg_0193f0c0a0007000800000000000aa0', 'msg_0193f0c0a0007000800000000000AA01', `${webhookId(run_id)}\n`]) expect(runOfWebhook(wrong)).toBeNull();
});

test.each([
  ['https://a.example/hook?token=x#y', 'https://a.example/hook'], ['http://a.example:8080', 'http://a.example:8080'], ['https://a.example?x', 'https://a.example'], ['ftp://x', null], ['no', null],
])('%s is shown as %s', (url, shown) => {
  expect(shownAddress(url)).toBe(shown);
});

const secretOf = (bytes: number): string => `whsec_${'A'.repeat(Math.floor(bytes / 3) * 4)}${['', 'AA==', 'AAA='][bytes % 3]}`;

test('a secret has 24 to 64 bytes in base64', () => {
  expect([23, 24, 25, 26, 63, 64, 65].map((bytes) => isWebhookSecret(secretOf(bytes)))).toEqual([false, true, true, true, true, true, false]);
  for (const wrong of ['', 'whsec_', secretOf(32).slice(6), `${secretOf(32)}\n`, secretOf(24).replace('A', '-'), `whsec_${'A'.repeat(33)}`]) expect(isWebhookSecret(wrong)).toBe(false);
});
