import { expect, test } from 'vitest';
import { createLogger, type LogLevel } from './logger.ts';

function logged(write: (logger: ReturnType<typeof createLogger>) => void, secrets: readonly string[] = [], level: LogLevel = 'info'): string[] {
  const lines: string[] = [];
  write(createLogger({ level, name: 'worker', secrets, destination: { write: (line) => lines.push(line) } }));
  return lines;
}

test('a line is one JSON object with time, level and name', () => {
  const [line, ...rest] = logged((logger) => logger.info({ run_id: 'run_1' }, 'claimed'));
  expect(rest).toEqual([]);
  expect(line!.endsWith('\n')).toBe(true);
  expect(JSON.parse(line!)).toMatchObject({ level: 'info', name: 'worker', run_id: 'run_1', msg: 'claimed', time: expect.stringMatching(/^\d{4}-.*Z$/) as string });
});

test('lines below the level are not written', () => {
  expect(logged((logger) => logger.info('x'), [], 'warn')).toEqual([]);
  expect(logged((logger) => logger.fatal('x'), [], 'silent')).toEqual([]);
});

test('values under telling keys are hidden at any depth, and in bindings too', () => {
  const lines = logged((logger) => {
    logger.info({ headers: { 'X-Api-Key': 'hidden-2', host: 'shown' }, list: [{ password: 'hidden-3' }], deep: { a: { b: { token: 'hidden-4' } } } });
    logger.child({ api_key: 'hidden-5', worker: 'w1' }).warn('with bindings');
  });
  expect(lines.join('')).not.toContain('hidden');
  expect(lines[0]).toContain('shown');
  expect(JSON.parse(lines[1]!)).toMatchObject({ worker: 'w1', api_key: '[redacted]' });
});

test('of an error its facts are written, and nothing of the request, the answer or the command that libraries hang onto it', () => {
  const command = Object.assign(new Error('OOM command not allowed'), { code: 'OOM', command: { name: 'evalsha', args: ['said-1'] }, previousErrors: [{ args: ['said-2'] }] });
  const outer = Object.assign(new Error('refused', { cause: command }), { status: 401, request: { headers: { Authorization: 'Bearer hidden' }, body: 'said-3' }, response: { data: 'said-4' }, detail: { input: 'said-5' } });
  const [line] = logged((logger) => { logger.error({ err: outer }, 'failed'); });
  expect(line).not.toMatch(/said-|hidden/);
  const { err } = JSON.parse(line!) as { err: Record<string, unknown> };
  const [many] = logged((logger) => { logger.error({ err: new AggregateError([Object.assign(command, { port: 1 }), outer]) }, 'failed'); });
  expect(many).not.toMatch(/said-|hidden/);
  expect((JSON.parse(many!) as { err: unknown }).err).toMatchObject({ errors: [{ code: 'OOM', port: 1 }, { status: 401 }] });
  expect(err).toMatchObject({ type: 'Error', message: 'refused: OOM command not allowed', status: 401, stack: expect.stringContaining('caused by: Error: OOM command not allowed') as string });
});

test('known secrets are hidden wherever they turn up, and lines stay JSON', () => {
  const secrets = ['sk-"quoted"\\key', 'sk-long-secret', 'sk-long-secret-and-more', 'p/w with space', 'abc'];
  const lines = logged((logger) => {
    for (const secret of secrets) logger.info({ url: `http://u:${encodeURIComponent(secret)}@h`, note: `>${secret}<` }, `sent ${secret}`);
    logger.error(new Error('refused sk-long-secret-and-more'));
  }, secrets);
  const text = lines.map((line) => JSON.stringify(JSON.parse(line))).join('\n');
  for (const shown of ['quoted', 'sk-long', 'and-more', 'with space', 'with%20space']) expect(text).not.toContain(shown);
  expect(text).toContain('sent abc');
});

test('what resists being read is logged as such, and throws nothing', () => {
  const throws = (): never => { throw new Error('no'); };
  const odd: unknown[] = [
    Object.create(null), { toString: throws }, Symbol('x'), Object.defineProperties(new Error('x'), { message: { get: throws }, stack: { get: throws } }),
    new Proxy(new Error('p'), { get: throws, getPrototypeOf: throws, ownKeys: throws }), { toJSON: throws }, { get token() { return throws(); } },
  ];
  const lines = logged((logger) => { for (const value of odd) for (const fields of [{ err: value }, { deep: value }]) logger.error(fields, 'it happened'); });
  expect(lines).toHaveLength(odd.length * 2);
  for (const line of lines) expect(JSON.parse(line)).toMatchObject({ level: 'error', msg: 'it happened' });
});
