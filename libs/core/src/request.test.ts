import { expect, test } from 'vitest';
import { fixture, fold, model, reply } from './fixture.ts';
import { decide } from './decide.ts';
import { modelRequest } from './request.ts';

test('a model without tool calling is told of earlier calls and results as text, and is offered no tool', () => {
  const state = fixture();
  const called = fold(state, decide(state, {
    type: 'model_replied', unavailable: [], now_s: 0, judgement: { hooks: [], checks: [], output: null }, shown_text: '', elapsed_s: 1, commands: [],
    reply: reply({ text: 'Let me see.', calls: [{ provider_id: 'x1', name: 'look', input: { at: 'sky' }, problem: null }], finish: 'tool_calls' }) }));
  const settled = fold(called, decide(called, { type: 'tool_calls_settled', results: [{ tool_use_id: 'x1', content: 'blue', is_error: false, duration: 1 }], elapsed_s: 1, timed_out: null, commands: [] }));
  const plain = modelRequest(settled, { ...model('m2', 1000), supports_tools: false });
  expect(plain.tools).toEqual([]);
  expect(plain.messages.slice(1)).toMatchObject([
    { role: 'assistant', calls: [], text: 'Let me see.\n[called look {"at":"sky"}]' }, { role: 'user', content: '[Result of look: blue]' },
  ]);
  expect(modelRequest(settled, model('m2', 1000)).messages.slice(1)).toMatchObject([{ role: 'assistant', calls: [{ tool_use_id: 'x1' }] }, { role: 'tool', content: 'blue' }]);
});
