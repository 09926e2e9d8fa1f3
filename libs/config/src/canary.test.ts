/** `chains.X.canary`: the trial of a new model, checked and put into the spec of the chain's agents. */
import { Ajv2020 } from 'ajv/dist/2020.js';
import { describe, expect, test } from 'vitest';
import { agentSpecOf, agentVersionOf, canaryDefinitions, chainSpecOf, configWarnings } from './agent-spec.ts';
import { checkConfig, type LoadedConfig } from './load.ts';
import { configJsonSchema } from './schema/config.ts';

const defaults = { stages: [0, 5, 25, 50, 100], min_runs: 50, bounds: { error_rate_delta: 0.02, latency_ratio: 1.5, cost_ratio: 2 } };

function withCanary(canary: unknown, over: Record<string, unknown> = {}): Record<string, unknown> {
  return {
    models: { small: { provider: 'ollama', model: 'a' }, next: { provider: 'ollama', model: 'b', supports_tools: false } },
    chains: { default: { models: ['small'], ...(canary === undefined ? {} : { canary }) } }, agents: { assistant: { instructions: 'Help.', tools: ['x'] } }, ...over,
  };
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

describe('a canary', () => {
  test('needs a model alone; the rest has defaults', () => {
    expect(canaryDefinitions(accepted(withCanary({ model: 'next' })))).toEqual({ default: { model: 'next', ...defaults } });
    const own = { model: 'next', stages: [0, 10, 100], min_runs: 20, bounds: { latency_ratio: 3 } };
    expect(canaryDefinitions(accepted(withCanary(own)))).toEqual({ default: { ...own, bounds: { ...defaults.bounds, latency_ratio: 3 } } });
    for (const none of [undefined, null]) expect(canaryDefinitions(accepted(withCanary(none)))).toEqual({});
  });

  test('is a model of the configuration that is not in the chain already', () => {
    expect(problemsAt(withCanary({ model: 'gone' }))).toEqual({ 'chains.default.canary.model': 'no model is named "gone"; defined: small, next' });
    expect(problemsAt(withCanary({ model: 'small' }))).toEqual({ 'chains.default.canary.model': '"small" stands in this chain already; a canary is added to it' });
    expect(problemsAt(withCanary({}))).toEqual({ 'chains.default.canary.model': 'missing; expected string' });
  });

  test.each([[[5, 100]], [[0]], [[]], [[0, 50, 50]], [[0, 50, 25]], [[0, 101]], [[0, 2.5]], ['all']])('has stages that begin with 0 and rise, not %j', (stages) => {
    const paths = Object.keys(problemsAt(withCanary({ model: 'next', stages })));
    expect(paths).toHaveLength(1);
    expect(paths[0]).toMatch(/^chains\.default\.canary\.stages/);
  });

  test.each([['min_runs', 0], ['min_runs', 501], ['bounds.error_rate_delta', -0.1], ['bounds.error_rate_delta', 1], ['bounds.latency_ratio', 0.5], ['bounds.cost_ratio', 'two'], ['bounds.other', 1], ['weight', 5]])('has %s in its range, not %j', (path, value) => {
    const [outer, inner] = path.split('.');
    expect(Object.keys(problemsAt(withCanary({ model: 'next', [outer!]: inner === undefined ? value : { [inner]: value } })))).toEqual([`chains.default.canary.${path}`]);
  });

  test('stands last in the spec, and is no part of which version the agent is but by being there', () => {
    const config = accepted(withCanary({ model: 'next' }));
    const spec = agentSpecOf(config, 'assistant')!;
    expect(spec.chain).toMatchObject({ models: [{ name: 'small' }, { name: 'next' }], canary: { model: 'next', arm: 'control', stage: 0 } });
    expect(chainSpecOf(config, 'default')).toEqual(spec.chain);
    const plain = agentSpecOf(accepted(withCanary(undefined)), 'assistant')!;
    expect(plain.chain).not.toHaveProperty('canary');
    expect(agentVersionOf(plain)).not.toBe(agentVersionOf(spec));
  });

  test('that lacks what an agent needs is a warning', () => {
    expect(configWarnings(accepted(withCanary({ model: 'next' })))).toEqual(['agent "assistant" has tools, but model "next" of its chain "default" does not support them']);
    expect(configWarnings(accepted(withCanary(null)))).toEqual([]);
  });

  test('is described in the JSON Schema for editors', () => {
    const validate = new Ajv2020({ strict: false, validateFormats: false }).compile(configJsonSchema());
    expect(validate(withCanary({ model: 'next', stages: [0, 10, 100], bounds: { cost_ratio: 3 } }))).toBe(true);
    expect(validate(withCanary(null))).toBe(true);
    expect(validate(withCanary({ model: 'next', weight: 5 }))).toBe(false);
    expect(validate(withCanary({ stages: [0, 5] }))).toBe(false);
  });
});
