import { expect, test } from 'vitest';
import { targetProblem, type TargetRules } from './target.ts';

const rules: TargetRules = {
  endpoints: { backend: { url: 'https://backend.example/hook?key=k' } }, signsOthers: true, allow: ['http://127.0.0.1:9000'],
  insideOf: (address) => /^(127\.|10\.|169\.254\.|::|fd)/.test(address) ? 'inside' : null,
};

test.each(['https://a.example/hook?x=1', 'http://8.8.8.8/', 'http://127.0.0.1:9000/hook', 'https://backend.example/hook?key=k', 'https://[2606:4700:4700::1111]/'])('%s can be told', (url) => {
  expect(targetProblem({ url }, rules)).toBeNull();
});

test.each([
  ['http://127.0.0.1/', 'public address'], ['http://[::1]/', 'public address'], ['http://[::ffff:127.0.0.1]/', 'public address'], ['http://2130706433/', 'public address'], ['http://0x7f000001', 'public address'],
  ['http://0177.0.0.1', 'public address'], ['http://169.254.169.254/latest', 'public address'], ['http://localhost.', 'loopback'], ['http://localhost:9000/', 'loopback'], ['http://x.localhost', 'loopback'], ['http://127.0.0.1:9001/', 'public address'],
  ['http://user@127.0.0.1', 'user and password'], ['https://u:p@a.example/', 'user and password'], ['ftp://x', 'http or https'], ['a.example', 'http or https'], ['', 'http or https'], [`https://a.example/${'x'.repeat(2048)}`, 'at most 2048'],
])('%s is refused: %s', (url, why) => {
  expect(targetProblem({ url }, rules)).toMatchObject({ field: 'url', problem: expect.stringContaining(why) as string });
});

test('an endpoint is known by its name', () => {
  expect(targetProblem({ endpoint: 'backend' }, rules)).toBeNull();
  expect(targetProblem({ endpoint: 'other' }, rules)).toEqual({ field: 'endpoint', problem: 'no endpoint has this name; there are backend' });
  for (const endpoint of ['constructor', '__proto__']) expect(targetProblem({ endpoint }, { ...rules, endpoints: {} })?.problem).toContain('has none');
});

test('what nothing signs is refused, with what to set; an endpoint\'s own address is signed by its secret', () => {
  const without = { ...rules, signsOthers: false };
  expect(targetProblem({ url: 'https://a.example/' }, without)?.problem).toContain('TREADLE_WEBHOOK_SECRET');
  expect(targetProblem({ url: 'https://backend.example/hook?key=k' }, without)).toBeNull();
});
