import { wellFormed, type AgentSpec } from '@treadle/core';
import type { AnswerView } from '@treadle/engine';
import { describe, expect, test, vi } from 'vitest';
import { createAnswerJudge, type AnswerJudgeDeps } from './answer-judge.ts';
import type { HookFunction, ValidatorFunction } from './functions.ts';

type Hooks = AgentSpec['stop_hooks'];
type Validators = AgentSpec['validators'];

const endless = (): never => { for (;;) { /* as a mistake in a loop's condition would */ } };
const backtracking = { pattern: '^(a+)+$', text: `${'a'.repeat(60)}!` };

/** A judge whose time limit is not reached by anything that ends: a busy machine must not decide a test. */
function judgeOf(functions: Partial<AnswerJudgeDeps>, limitMs = 5000) {
  const skipped: string[] = [];
  const judge = createAnswerJudge({ hooks: {}, validators: {}, ...functions }, { limitMs, onSkipped: ({ hook, why }) => { skipped.push(`${hook}: ${why}`); } });
  return { judge, skipped };
}

function specOf(parts: { stop_hooks?: Hooks; validators?: Validators }): AgentSpec {
  return { stop_hooks: [], validators: [], ...parts } as unknown as AgentSpec;
}

const viewOf = (text: string): AnswerView => ({ run_id: 'run_1', text, turn_number: 3, tool_calls: 2, input: 'What?' });

function hook(decide: HookFunction, limitMs?: number) {
  const { judge, skipped } = judgeOf({ hooks: { one: decide } }, limitMs);
  return { entry: judge.judge(specOf({ stop_hooks: [{ name: 'one', type: 'function' }] }), viewOf('The answer.')).hooks[0], skipped };
}

function check(validate: ValidatorFunction, limitMs?: number) {
  const { judge } = judgeOf({ validators: { one: validate } }, limitMs);
  return judge.judge(specOf({ validators: [{ name: 'one', mode: 'enforce', type: 'function' }] }), viewOf('The answer.')).checks[0];
}

function schemaCheck(schema: Record<string, unknown>, text: string) {
  const judgement = judgeOf({}).judge.judge(specOf({ validators: [{ name: 'shape', mode: 'enforce', type: 'json_schema', schema }] }), viewOf(text));
  return { ...judgement.checks[0]!, output: judgement.output };
}

test('an answer that nobody judges is judged by nobody', () => {
  expect(judgeOf({}).judge.judge(specOf({}), viewOf('x'))).toEqual({ hooks: [], checks: [], output: null });
});

describe('stop hooks', () => {
  test('speak in the agent\'s order; a pattern that does not match says nothing', () => {
    const regex = (name: string, pattern: string) => ({ name, type: 'regex', pattern, decision: 'extra_turn', prompt: `${name}!` }) as const;
    const { judge } = judgeOf({ hooks: { own: () => 'stop' } });
    const stop_hooks: Hooks = [regex('b', 'answer'), regex('quiet', '^no$'), { name: 'own', type: 'function' }, regex('a', '(?i:THE)')];
    expect(judge.judge(specOf({ stop_hooks }), viewOf('the answer')).hooks).toEqual([
      { hook: 'b', decision: 'extra_turn', prompt: 'b!' }, { hook: 'own', decision: 'stop', prompt: '' }, { hook: 'a', decision: 'extra_turn', prompt: 'a!' },
    ]);
  });

  test.each<[string, HookFunction, object]>([
    ['a word', () => 'continue', { decision: 'continue', prompt: '' }],
    ['an extra turn', () => ({ decision: 'extra_turn', prompt: 'Go on.' }), { decision: 'extra_turn', prompt: 'Go on.' }],
    ['a prompt with half a character', () => ({ decision: 'extra_turn', prompt: 'a\ud800' }), { decision: 'extra_turn', prompt: 'a\ufffd' }],
    ['a decision without a prompt', () => ({ decision: 'stop' }), { decision: 'stop', prompt: '' }],
  ])('a function may return %s', (_name, decide, expected) => {
    expect(hook(decide).entry).toEqual({ hook: 'one', ...expected });
  });

  test.each<[string, () => unknown, string]>([
    ['nothing', () => undefined, 'no decision'], ['null', () => null, 'no decision'], ['a word nobody knows', () => 'halt', 'no decision'],
    ['an extra turn without a prompt', () => 'extra_turn', 'without a prompt'], ['a prompt that is a number', () => ({ decision: 'stop', prompt: 5 }), 'no text'],
    ['a promise', () => Promise.resolve('stop'), 'promise'], ['something like a promise', () => ({ then: () => undefined }), 'promise'],
    ['an error', () => { throw new Error('no luck'); }, 'no luck'], ['a thrown null', () => { throw null; }, 'failed: null'],
    ['an error that cannot be shown', () => { throw { toString: () => { throw new Error('again'); } }; }, 'cannot be shown'],
    ['a result that throws when it is read', () => ({ get decision() { throw new Error('read'); } }), 'read'],
  ])('one that comes to %s is skipped', (_name, decide, why) => {
    const { entry, skipped } = hook(decide as HookFunction);
    expect(entry).toEqual({ hook: 'one', decision: 'skipped', prompt: '' });
    expect(skipped).toEqual([expect.stringContaining(why)]);
  });

  test('an asynchronous one is not even called, since nothing would stop it behind its first await', () => {
    const called = vi.fn();
    expect(hook((async () => { called(); return 'stop'; }) as unknown as HookFunction).entry?.decision).toBe('skipped');
    expect(called).not.toHaveBeenCalled();
  });

  test('a promise that is rejected later ends no process', async () => {
    const unhandled = vi.fn();
    process.once('unhandledRejection', unhandled);
    hook((() => Promise.reject(new Error('late'))) as unknown as HookFunction);
    // Node reports what is unhandled once the microtasks of this turn are done.
    await new Promise((resolve) => { setImmediate(resolve); });
    await new Promise((resolve) => { setImmediate(resolve); });
    process.off('unhandledRejection', unhandled);
    expect(unhandled).not.toHaveBeenCalled();
  });

  test.each<[string, HookFunction]>([
    ['an endless loop', endless],
    ['an endless loop that wants to catch its end', () => { try { return endless(); } catch { return 'stop'; } finally { endless(); } }],
    ['a pattern that backtracks for ever', () => (new RegExp(backtracking.pattern).test(backtracking.text) ? 'stop' : 'continue')],
    ['a result that loops when it is read', () => ({ get decision() { return endless(); } })],
  ])('%s is stopped, and the next one speaks', (_name, decide) => {
    const { judge, skipped } = judgeOf({ hooks: { one: decide, two: () => 'stop' } }, 50);
    const startMs = performance.now();
    const { hooks } = judge.judge(specOf({ stop_hooks: [{ name: 'one', type: 'function' }, { name: 'two', type: 'function' }] }), viewOf('x'));
    expect(performance.now() - startMs).toBeLessThan(2000);
    expect(hooks).toEqual([{ hook: 'one', decision: 'skipped', prompt: '' }, { hook: 'two', decision: 'stop', prompt: '' }]);
    expect(skipped).toEqual(['one: it took longer than 50 ms']);
  });

  test('a regular expression of the configuration is stopped, too', () => {
    const { judge } = judgeOf({}, 50);
    const stop_hooks: Hooks = [{ name: 'slow', type: 'regex', pattern: backtracking.pattern, decision: 'stop', prompt: '' }];
    expect(judge.judge(specOf({ stop_hooks }), viewOf(backtracking.text)).hooks).toEqual([{ hook: 'slow', decision: 'skipped', prompt: '' }]);
  });

  test('a name that only the prototype has is no function', () => {
    const { judge, skipped } = judgeOf({});
    const named = ['constructor', 'toString', 'gone'].map((name) => ({ name, type: 'function' }) as const);
    expect(judge.judge(specOf({ stop_hooks: named }), viewOf('x')).hooks.map((each) => each.decision)).toEqual(['skipped', 'skipped', 'skipped']);
    expect(skipped).toHaveLength(3);
  });

  test('a view that a function tries to change stays as it is for the next', () => {
    const seen: AnswerView[] = [];
    const change: HookFunction = (view) => { (view as { text: string }).text = 'mine'; return 'stop'; };
    const { judge, skipped } = judgeOf({ hooks: { change, look: (view) => { seen.push(view); return 'stop'; } } });
    const view = viewOf('The answer.');
    const { hooks } = judge.judge(specOf({ stop_hooks: [{ name: 'change', type: 'function' }, { name: 'look', type: 'function' }] }), view);
    expect(hooks.map((each) => each.decision)).toEqual(['skipped', 'stop']);
    expect(skipped[0]).toMatch(/read only/);
    expect(seen).toEqual([viewOf('The answer.')]);
    // The caller's own object is left alone.
    expect(Object.isFrozen(view)).toBe(false);
  });
});

describe('function validators', () => {
  test.each<[string, ValidatorFunction]>([['true', () => true], ['ok', () => ({ ok: true })]])('accept by %s', (_name, validate) => {
    expect(check(validate)).toEqual({ name: 'one', mode: 'enforce', ok: true, error_type: '', feedback: '', detail: '' });
  });

  test.each<[string, ValidatorFunction, object]>([
    ['false', () => false, { error_type: 'rejected', feedback: 'The answer was not accepted by "one".' }],
    ['what is wrong', () => ({ ok: false, feedback: 'Too long.', error_type: 'too_long' }), { error_type: 'too_long', feedback: 'Too long.', detail: 'Too long.' }],
    ['an error_type that is free text', () => ({ ok: false, feedback: 'No.', error_type: 'run 17 is bad' }), { error_type: 'rejected', feedback: 'No.' }],
    ['no feedback', () => ({ ok: false }) as never, { error_type: 'rejected', feedback: 'The answer was not accepted by "one".' }],
  ])('refuse by %s', (_name, validate, expected) => {
    expect(check(validate)).toMatchObject({ ok: false, ...expected });
  });

  test.each<[string, () => unknown, string]>([
    ['nothing', () => undefined, 'neither'], ['a text', () => 'fine', 'neither'], ['a promise', () => Promise.resolve(true), 'promise'],
    ['an asynchronous function', async () => true, 'asynchronous'], ['an error', () => { throw new Error('no luck'); }, 'no luck'], ['a thrown null', () => { throw null; }, 'null'],
  ])('one that comes to %s has not agreed', (_name, validate, why) => {
    const found = check(validate as ValidatorFunction);
    expect(found).toMatchObject({ ok: false, error_type: 'failed', detail: expect.stringContaining(why) as string });
    expect(found?.feedback).toContain('could not be checked by "one"');
  });

  test('one that never ends has not agreed', () => {
    expect(check(endless, 50)).toMatchObject({ ok: false, error_type: 'timeout', detail: 'it took longer than 50 ms' });
  });

  test('one that this worker does not have has not agreed', () => {
    const validators: Validators = [{ name: 'gone', mode: 'report', type: 'function' }];
    expect(judgeOf({}).judge.judge(specOf({ validators }), viewOf('x')).checks).toMatchObject([{ name: 'gone', mode: 'report', ok: false, error_type: 'failed' }]);
  });
});

describe('regular expressions', () => {
  const pattern = (text: string, form: string, limitMs?: number) => judgeOf({}, limitMs).judge
    .judge(specOf({ validators: [{ name: 'form', mode: 'report', type: 'regex', pattern: form, feedback: 'Say yes.' }] }), viewOf(text)).checks[0];

  test('give the feedback of the configuration', () => {
    expect(pattern('yes', '^yes$')).toMatchObject({ ok: true });
    expect(pattern('no', '^yes$')).toEqual({ name: 'form', mode: 'report', ok: false, error_type: 'pattern', feedback: 'Say yes.', detail: 'the answer does not match ^yes$' });
  });

  test('have a time limit, and one that does not compile has not agreed', () => {
    expect(pattern(backtracking.text, backtracking.pattern, 50)).toMatchObject({ ok: false, error_type: 'timeout' });
    expect(pattern('x', '(')).toMatchObject({ ok: false, error_type: 'failed' });
  });
});

describe('JSON schemas', () => {
  const person = { type: 'object', required: ['name'], properties: { name: { type: 'string' }, age: { type: 'integer' }, tags: { type: 'array', items: { enum: ['a', 'b'] } } }, additionalProperties: false };

  test.each([
    ['alone', '{"name":"Ada"}'], ['with space around it', '\n {"name":"Ada"}\n'], ['in a fence', '```json\n{"name":"Ada"}\n```'],
    ['in a fence, with words on both sides', 'Here it is:\n```\n{"name":"Ada"}\n```\nDone.'], ['behind words', 'Here [1] it is: {"name":"Ada"} '],
    ['in the last of two fences', '```json\n{"x":1}\n```\nor better\n```json\n{"name":"Ada"}\n```'],
    ['behind a fence that is no JSON', '```sh\nls\n```\n{"name":"Ada"}'],
  ])('find the document %s', (_name, text) => {
    expect(schemaCheck(person, text)).toMatchObject({ ok: true, output: { name: 'Ada' } });
  });

  test.each([['words', 'Ada is her name.'], ['nothing', ''], ['half a document', '{"name":"Ada"'], ['words behind it', '{"name":"Ada"} is the answer'], ['brackets without end', `${'[1,'.repeat(200)}]`]])(
    'ask again for %s', (_name, text) => {
      expect(schemaCheck(person, text)).toMatchObject({ ok: false, error_type: 'json_syntax', output: null, feedback: expect.stringContaining('must be JSON') as string });
    });

  test.each([
    ['{}', '"name" is missing'], ['{"name":"Ada","age":"old"}', '"age" must be integer'], ['{"name":"Ada","tags":["a","c"]}', '"tags.1" must be one of ["a","b"]'],
    ['{"name":"Ada","colour":1}', '"colour" is not known'], ['[]', 'the whole must be object'],
  ])('name the place in %s and what was expected there', (text, fault) => {
    expect(schemaCheck(person, text)).toMatchObject({ ok: false, error_type: 'schema', output: null, detail: fault, feedback: `The answer is JSON, but it does not fit: ${fault}.` });
  });

  test('take other values than objects, null and false too', () => {
    expect(schemaCheck({ type: 'number' }, '42')).toMatchObject({ ok: true, output: 42 });
    expect(schemaCheck({ type: 'boolean' }, 'false')).toMatchObject({ ok: true, output: false });
    expect(schemaCheck({ type: 'null' }, 'null')).toMatchObject({ ok: true, output: null });
  });

  test('are read by their draft', () => {
    const tuple = { type: 'array', items: [{ type: 'string' }, { type: 'number' }] };
    expect(schemaCheck({ $schema: 'http://json-schema.org/draft-07/schema#', ...tuple }, '["a","b"]')).toMatchObject({ ok: false, detail: '"1" must be number' });
    expect(schemaCheck({ $schema: 'https://json-schema.org/draft/2020-12/schema', type: 'array', prefixItems: tuple.items }, '["a","b"]')).toMatchObject({ ok: false });
  });

  test('a schema may be a part of itself as a whole', () => {
    const tree = { type: 'object', properties: { v: { type: 'integer' }, kids: { type: 'array', items: { $ref: '#' } } }, required: ['v'] };
    expect(schemaCheck(tree, '{"v":1,"kids":[{"v":2}]}')).toMatchObject({ ok: true });
    expect(schemaCheck(tree, '{"v":1,"kids":[{"v":"x"}]}')).toMatchObject({ ok: false, detail: '"kids.0.v" must be integer' });
  });

  test('that cannot be used have not agreed', () => {
    expect(schemaCheck({ type: 'nothing' }, '{}')).toMatchObject({ ok: false, error_type: 'failed', detail: expect.stringContaining('cannot be used') as string });
  });

  test('whose patterns backtrack for ever are stopped', () => {
    const { judge } = judgeOf({}, 50);
    const validators: Validators = [{ name: 'slow', mode: 'enforce', type: 'json_schema', schema: { type: 'string', pattern: backtracking.pattern } }];
    expect(judge.judge(specOf({ validators }), viewOf(JSON.stringify(backtracking.text))).checks[0]).toMatchObject({ ok: false, error_type: 'timeout' });
  });

  test('give an output that may enter the log', () => {
    const { output } = schemaCheck({ type: 'object' }, '{"a":"\\ud800"}');
    expect(output).toEqual(wellFormed(output));
    expect(output).toEqual({ a: '\ufffd' });
  });

  test('the output is that of the first schema that accepts', () => {
    const schema = (name: string, type: string) => ({ name, mode: 'report', type: 'json_schema', schema: { type } }) as const;
    const judgement = judgeOf({}).judge.judge(specOf({ validators: [schema('a', 'string'), schema('b', 'object'), schema('c', 'object')] }), viewOf('{"x":1}'));
    expect(judgement.checks.map((each) => each.ok)).toEqual([false, true, true]);
    expect(judgement.output).toEqual({ x: 1 });
  });
});

test('a schema that would be judged later is judged at once; what every object has is no part of an answer', async () => {
  const stray: unknown[] = [];
  const note = (reason: unknown) => stray.push(reason);
  process.on('unhandledRejection', note);
  expect(schemaCheck({ $async: true, type: 'object', required: ['a'] }, '{}').ok).toBe(false);
  expect(schemaCheck({ $async: true, type: 'object', required: ['a'] }, '{"a":1}').ok).toBe(true);
  expect(schemaCheck({ type: 'object', properties: { constructor: { type: 'string' } } }, '{}').ok).toBe(true);
  expect(schemaCheck({ type: 'object', required: ['toString'] }, '{}').ok).toBe(false);
  await new Promise((resolve) => { setImmediate(resolve); });
  process.off('unhandledRejection', note);
  expect(stray).toEqual([]);
});
