import { describe, expect, test } from 'vitest';
import { answeringApi } from '../fixtures/answering-api.ts';
import { canaryCommand } from './canary.ts';
import { chainsCommand, modelsCommand } from './models.ts';

const canary = {
  chain: 'default', model: 'next', status: 'active', stage: 25, stages: [0, 5, 25, 100], min_runs: 50, bounds: { error_rate_delta: 0.02, latency_ratio: 1.5, cost_ratio: 2 },
  since: '2030-01-01T00:00:00.000Z', verdict: { decision: 'hold', reason: 'too_few_runs', numbers: { totals: { canary: { ended: 3, completed: 2, failed: 1, validation_failures: 0, tool_errors: 4, cost_usd: 0.5 } } } },
  decisions: [{ id: 'd', at: '2030-01-01T00:00:00.000Z', decision: 'promote', by: 'judge', model: 'next', from_stage: 5, to_stage: 25, status: 'active', reason: 'within_bounds', numbers: {} }],
};
const api = answeringApi({ status: 200, body: canary });

describe('canary', () => {
  test.each([
    [['set', 'default', '25'], { action: 'set', stage: 25 }], [['pause', 'default'], { action: 'pause' }], [['promote', 'default'], { action: 'promote' }], [['rollback', 'default'], { action: 'rollback' }],
  ])('%j asks once, and says where the canary is now', async (args, body) => {
    expect(await canaryCommand(args)).toBe(0);
    expect(api.asked).toEqual([{ method: 'PUT', url: '/v1/chains/default/canary', body }]);
    expect(api.printed).toBe('default: next begins 25 % of new runs (active)\n2030-01-01T00:00:00.000Z  promote  5 → 25 %  within_bounds, by judge\n');
  });

  test('show prints the rules, the verdict, what the arms have come to and what was decided', async () => {
    expect(await canaryCommand(['show', 'default'])).toBe(0);
    expect(api.asked).toEqual([{ method: 'GET', url: '/v1/chains/default/canary', body: undefined }]);
    for (const part of ['stages 0, 5, 25, 100; 50 runs a stage', 'now: hold (too_few_runs)', 'canary   ended 3  completed 2  failed 1', 'within_bounds, by judge']) expect(api.printed).toContain(part);
  });

  test.each([[['show', 'default', '--json']], [['rollback', 'default', '--json']]])('%j prints what the API says', async (args) => {
    expect(await canaryCommand(args)).toBe(0);
    expect(JSON.parse(api.printed)).toEqual(canary);
  });

  test.each([[[]], [['show']], [['set', 'default']], [['set', 'default', 'all']], [['set', 'default', '5', '6']], [['promote', 'default', '5']], [['fly', 'default']], [['constructor', 'default']]])('%j is bad usage, and nothing is asked', async (args) => {
    await expect(canaryCommand(args)).rejects.toMatchObject({ exitCode: 2 });
    expect(api.asked).toEqual([]);
  });
});

describe('models and chains', () => {
  test('are listed, a line each', async () => {
    api.answer = { status: 200, body: { data: [{ name: 'small', provider: 'ollama', model: 'qwen3:4b', context_window: 8192, max_output_tokens: 1, supports_tools: true, supports_images: false }], next_cursor: null } };
    expect(await modelsCommand(['ls'])).toBe(0);
    expect(api.printed).toMatch(/^small +ollama +qwen3:4b +window 8192 +tools\n$/);
    api.printed = '';
    api.answer = { status: 200, body: { data: [{ name: 'default', models: ['small', 'next'], canary: { model: 'next', stage: 0, status: 'rolled_back' } }, { name: 'plain', models: ['small'], canary: null }], next_cursor: null } };
    expect(await chainsCommand(['ls'])).toBe(0);
    expect(api.printed).toMatch(/^default +small → next {3}canary next: 0 % \(rolled back\)\nplain +small\n$/);
    expect(api.asked.map(({ url }) => url)).toEqual(['/v1/models', '/v1/chains']);
    api.printed = '';
    expect(await chainsCommand(['ls', '--json'])).toBe(0);
    expect(JSON.parse(api.printed)).toEqual(api.answer.body);
  });

  test.each([[[]], [['show']], [['ls', 'x']]])('%j is bad usage', async (args) => {
    await expect(modelsCommand(args)).rejects.toMatchObject({ exitCode: 2 });
    expect(api.asked).toEqual([]);
  });
});
