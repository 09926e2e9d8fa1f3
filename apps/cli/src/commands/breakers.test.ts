import { expect, test } from 'vitest';
import { answeringApi } from '../fixtures/answering-api.ts';
import { asCommandFailure } from '../server.ts';
import { breakersCommand } from './breakers.ts';
const api = answeringApi({ status: 200, body: { id: 'model:a:overloaded', kind: 'breaker', state: 'open', forced: true } });

test.each([
  ['open', 'model:a:overloaded stays open until it is reset\n'], ['reset', 'model:a:overloaded is reset\n'],
])('%s asks the API once, its id as one part of the path', async (verb, line) => {
  expect(await breakersCommand([verb, 'model:org/a:overloaded'])).toBe(0);
  expect(api.asked).toEqual([{ method: 'POST', url: '/v1/breakers/model%3Aorg%2Fa%3Aoverloaded', body: { action: verb } }]);
  expect(api.printed).toBe(line);
});

test('open prints what the API answered, with --json', async () => {
  expect(await breakersCommand(['open', 'model:a:overloaded', '--json'])).toBe(0);
  expect(JSON.parse(api.printed)).toEqual(api.answer.body);
});

test('ls has a line for each breaker and bench', async () => {
  const common = { openings: 1, opened_at: '2030-01-01T00:00:00.000Z' };
  const data = [
    { ...common, id: 'credential:f', kind: 'bench', breaker: 'credential:f', error_type: 'rate_limited', state: 'open', forced: false, probe_at: '2030-01-01T00:01:00.000Z' },
    { ...common, id: 'model:a:overloaded', kind: 'breaker', breaker: 'model:a', error_type: 'overloaded', state: 'open', forced: true, probe_at: null },
  ];
  api.answer = { status: 200, body: { data, next_cursor: null } };
  expect(await breakersCommand(['ls'])).toBe(0);
  expect(api.asked).toEqual([{ method: 'GET', url: '/v1/breakers' }]);
  expect(api.printed).toBe('credential:f  bench    open       rate_limited      until 2030-01-01T00:01:00.000Z\nmodel:a:overloaded  breaker  open       overloaded        until it is reset\n');
  api.printed = '';
  expect(await breakersCommand(['ls', '--json'])).toBe(0);
  expect(JSON.parse(api.printed)).toEqual(api.answer.body);
});

test.each([[[]], [['open']], [['reset']], [['ls', 'x']], [['close', 'x']], [['open', 'x', 'y']], [['constructor', 'x']]])('%j is bad usage, and nothing is asked', async (args) => {
  await expect(breakersCommand(args)).rejects.toMatchObject({ exitCode: 2 });
  expect(api.asked).toEqual([]);
});

test.each([[404, 2], [422, 2], [503, 3]])('what the API refuses with %i is exit code %i', async (status, exitCode) => {
  api.answer = { status, body: { code: 'some_code', detail: 'Some words.' } };
  const failure: unknown = await breakersCommand(['reset', 'model:a:overloaded']).catch((error: unknown) => asCommandFailure(error));
  expect(failure).toMatchObject({ exitCode, message: 'some_code: Some words.' });
});
