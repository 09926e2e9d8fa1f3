import { Ajv2020 } from 'ajv/dist/2020.js';
import { describe, expect, expectTypeOf, test } from 'vitest';
import { agentSpecOf, agentVersionOf } from './agent-spec.ts';
import { hookFunctions, modelPrices, toolPolicies, validatorFunctions } from './connections.ts';
import { defineConfig } from './define-config.ts';
import { checkConfig, type LoadedConfig } from './load.ts';
import { configJsonSchema, type TreadleConfig } from './schema/config.ts';

const base = { models: { small: { provider: 'ollama' as const, model: 'm' } }, chains: { default: { models: ['small'] } } };

function withAgent(agent: object): object {
  return { ...base, agents: { a: { instructions: 'x', ...agent } } };
}

function accepted(raw: unknown): LoadedConfig {
  const outcome = checkConfig(raw, {});
  if (outcome.type === 'invalid') throw new Error(JSON.stringify(outcome.problems));
  return outcome.config;
}

function problemsAt(raw: unknown): Record<string, string> {
  const outcome = checkConfig(raw, {});
  return outcome.type === 'ok' ? {} : Object.fromEntries(outcome.problems.map((each) => [each.path, each.problem]));
}

describe('validators and stop hooks', () => {
  test('are named by type and place where they have no name, and enforce unless told otherwise', () => {
    const spec = agentSpecOf(accepted(withAgent({
      validators: [
        { type: 'json_schema', schema: { type: 'object' } }, { type: 'regex', pattern: '^A', mode: 'report', feedback: 'Begin with A.' }, { type: 'regex', pattern: 'z$', name: 'ending' },
      ],
      stop_hooks: [{ type: 'regex', pattern: 'TODO', decision: 'extra_turn', prompt: 'Finish it.' }, { type: 'regex', pattern: '…$', decision: 'continue', name: 'cut' }],
    })), 'a')!;
    expect(spec.validators).toEqual([
      { name: 'json_schema_0', mode: 'enforce', type: 'json_schema', schema: { type: 'object' } },
      { name: 'regex_1', mode: 'report', type: 'regex', pattern: '^A', feedback: 'Begin with A.' },
      { name: 'ending', mode: 'enforce', type: 'regex', pattern: 'z$', feedback: 'The answer must match the regular expression z$' },
    ]);
    expect(spec.stop_hooks).toEqual([
      { name: 'regex_0', type: 'regex', pattern: 'TODO', decision: 'extra_turn', prompt: 'Finish it.' }, { name: 'cut', type: 'regex', pattern: '…$', decision: 'continue', prompt: '' },
    ]);
    expect(JSON.parse(JSON.stringify(spec))).toEqual(spec);
  });

  test('as functions stay out of the spec and are found by name', () => {
    const check = () => true;
    const decide = () => 'stop' as const;
    const config = accepted(defineConfig({
      ...base, agents: {
        a: { instructions: 'x', validators: [{ type: 'function', name: 'short', check }], stop_hooks: [{ type: 'function', name: 'done', decide }] },
        b: { instructions: 'y', validators: [{ type: 'function', name: 'short', mode: 'report', check }] },
      },
    }));
    const spec = agentSpecOf(config, 'a')!;
    expect(spec).toMatchObject({ validators: [{ name: 'short', mode: 'enforce', type: 'function' }], stop_hooks: [{ name: 'done', type: 'function' }] });
    expect(agentVersionOf(spec)).toBe(agentVersionOf(JSON.parse(JSON.stringify(spec)) as typeof spec));
    expect(validatorFunctions(config)).toEqual({ short: check });
    expect(hookFunctions(config)).toEqual({ done: decide });
  });

  test('are typed for treadle.config.ts', () => {
    type Agent = TreadleConfig['agents'][string];
    type Own = Extract<NonNullable<Agent['validators']>[number], { type: 'function' }>;
    expectTypeOf<Parameters<Own['check']>[0]['text']>().toEqualTypeOf<string>();
  });

  test('whose names do not mean one thing are faults', () => {
    const raw = { ...base, agents: {
      a: { instructions: 'x', validators: [{ type: 'function', name: 'f', check: () => true }, { type: 'regex', pattern: 'a', name: 'f' }] },
      b: { instructions: 'x', validators: [{ type: 'function', name: 'f', check: () => false }], stop_hooks: [{ type: 'function', name: 'f', decide: () => 'stop' }] },
      c: { instructions: 'x', stop_hooks: [{ type: 'regex', name: 'regex_1', pattern: 'a', decision: 'stop' }, { type: 'regex', pattern: 'b', decision: 'stop' }] },
    } };
    expect(problemsAt(raw)).toEqual({
      'agents.a.validators.1': 'a validator named "f" stands in this agent already',
      'agents.b.validators.0': 'another function of a validator has the name "f" already',
      'agents.c.stop_hooks.1': 'a stop hook named "regex_1" stands in this agent already',
    });
  });

  test('may have a schema that is a part of itself as a whole', () => {
    const schema = { type: 'object', properties: { kids: { type: 'array', items: { $ref: '#' } } } };
    for (const $schema of ['https://json-schema.org/draft/2020-12/schema', 'http://json-schema.org/draft-07/schema#']) expect(checkConfig(withAgent({ validators: [{ type: 'json_schema', schema: { $schema, ...schema } }] }), {}).type).toBe('ok');
  });

  test('that could never work are faults at their places', () => {
    const raw = withAgent({
      validators: [
        { type: 'regex', pattern: '(' }, { type: 'xml' }, { type: 'json_schema', schema: { type: 'nothing' } }, { type: 'regex', pattern: 'a', mode: 'maybe' },
        { type: 'function', name: 'noCheck' }, { type: 'function', check: () => true }, { type: 'function', name: 'later', check: async () => true },
        { type: 'regex', pattern: 'a', name: 'action_parse' }, { type: 'regex', pattern: 'a', colour: 1 }, 'text',
      ],
      stop_hooks: [{ type: 'regex', pattern: '[', decision: 'stop' }, { type: 'regex', pattern: 'a', decision: 'halt' }, { type: 'regex', pattern: 'a', decision: 'extra_turn' }, { type: 'function', name: 'x', decide: 'stop' }],
    });
    const problems = problemsAt(raw);
    expect(Object.fromEntries(Object.entries(problems).map(([path, problem]) => [path.replace(/^agents\.a\./, ''), problem]))).toEqual({
      'validators.0.pattern': expect.stringContaining('expected a regular expression: ') as string,
      'validators.1.type': 'expected json_schema or regex or function',
      'validators.2.schema': expect.stringContaining('expected a JSON Schema: ') as string,
      'validators.3.mode': expect.stringContaining('"enforce"') as string,
      'validators.4.check': 'expected a function, which only treadle.config.ts can hold',
      'validators.5.name': 'missing; expected string',
      'validators.6.check': expect.stringContaining('not async') as string,
      'validators.7.name': 'this name belongs to a validator of the host',
      'validators.8.colour': 'unknown key',
      'validators.9': 'expected object, received string',
      'stop_hooks.0.pattern': expect.stringContaining('expected a regular expression: ') as string,
      'stop_hooks.1.decision': expect.stringContaining('"extra_turn"') as string,
      'stop_hooks.2.prompt': 'an extra turn needs a prompt',
      'stop_hooks.3.decide': 'expected a function, which only treadle.config.ts can hold',
    });
  });

  test('change the version of the agent', () => {
    const version = (agent: object) => agentVersionOf(agentSpecOf(accepted(withAgent(agent)), 'a')!);
    const versions = [{}, { protocol: 'json_action' }, { validators: [{ type: 'regex', pattern: 'a' }] }, { validators: [{ type: 'regex', pattern: 'b' }] }, { limits: { max_retries: 1 } }].map(version);
    expect(new Set(versions).size).toBe(versions.length);
  });
});

test('the protocol is native unless told otherwise', () => {
  expect(agentSpecOf(accepted(withAgent({})), 'a')!.protocol).toBe('native');
  expect(agentSpecOf(accepted(withAgent({ protocol: 'json_action' })), 'a')!.protocol).toBe('json_action');
  expect(problemsAt(withAgent({ protocol: 'xml' }))).toHaveProperty(['agents.a.protocol']);
});

test('prices are by model, zero where none is given, and no part of a run', () => {
  const config = accepted({ ...withAgent({}), models: {
    small: { provider: 'ollama', model: 'm', price: { input_per_mtok: 0.5 } }, other: { provider: 'ollama', model: 'n' }, cached: { provider: 'openai', model: 'o', price: { input_per_mtok: 2, cached_input_per_mtok: 0 } },
  } });
  expect(modelPrices(config)).toEqual({
    small: { input_per_mtok: 0.5, output_per_mtok: 0 }, other: { input_per_mtok: 0, output_per_mtok: 0 }, cached: { input_per_mtok: 2, output_per_mtok: 0, cached_input_per_mtok: 0 } });
  expect(JSON.stringify(agentSpecOf(config, 'a'))).not.toContain('mtok');
  expect(problemsAt({ ...withAgent({}), models: { small: { provider: 'ollama', model: 'm', price: { input_per_mtok: -1 } } } })).toHaveProperty(['models.small.price.input_per_mtok']);
});

test('polling is passed on where it is said', () => {
  expect(toolPolicies(accepted({ ...withAgent({}), tools: { a: { polling: true }, b: { polling: false }, c: {} } }))).toEqual({ a: { polling: true }, b: { polling: false }, c: {} });
});

test('the JSON Schema for editors knows validators and hooks, but no functions', () => {
  const validate = new Ajv2020({ strict: false, validateFormats: false }).compile(configJsonSchema());
  const good = withAgent({ validators: [{ type: 'regex', pattern: 'a' }, { type: 'json_schema', schema: {} }], stop_hooks: [{ type: 'regex', pattern: 'a', decision: 'stop' }], limits: { max_cost_usd: null } });
  expect(validate(good)).toBe(true);
  expect(validate(withAgent({ validators: [{ type: 'function', name: 'f' }] }))).toBe(false);
  expect(validate(withAgent({ validators: [{ type: 'function', name: 'f', check: 1 }] }))).toBe(false);
});
