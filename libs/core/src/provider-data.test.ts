/** What a provider wants back with a reply's thinking. */
import { describe, expect, test } from 'vitest';
import { stamp } from './codec.ts';
import { decide } from './decide.ts';
import type { EventBody } from './events.ts';
import { evolve } from './evolve.ts';
import { fixture, fold, model, reply, turnOf } from './fixture.ts';
import { modelRequest } from './request.ts';
import type { RunState } from './state.ts';
import { noJudgement, type ModelReply } from './turn-input.ts';

const signed = { signature: 'sigA', blocks: [{ type: 'thinking', length: 2 }] };

function replied(state: RunState, said: Partial<ModelReply>): RunState {
  return fold(state, decide(state, { type: 'model_replied', unavailable: [], now_s: 1000, reply: reply(said), judgement: noJudgement, shown_text: '', elapsed_s: 1, commands: [] }));
}

const call = { provider_id: 'c', name: 'look', input: {}, problem: null };
const assistant = (state: RunState) => state.transcript.messages.find((message) => message.role === 'assistant');

describe('what a provider signed', () => {
  test('is kept unchanged in the reply it came with, and sent with it', () => {
    const after = replied(fixture(), { thinking: 'hm', provider_data: signed, text: 'Let me look.', calls: [call] });
    expect(assistant(after)).toMatchObject({ thinking: 'hm', provider_data: signed, text: 'Let me look.' });
    expect(modelRequest(after, model('m1', 1000)).messages).toContainEqual(expect.objectContaining({ role: 'assistant', provider_data: signed }));
  });

  test('is kept where the thinking itself is not shown', () => {
    expect(assistant(replied(fixture(), { provider_data: signed, calls: [call] }))).toMatchObject({ thinking: '', provider_data: signed });
  });

  test('is none where the provider gave none', () => {
    expect(assistant(replied(fixture(), { calls: [call] }))).toMatchObject({ provider_data: null });
  });

  test('is none in a log that was written before it was kept', () => {
    const old = { type: 'assistant_thinking', content: 'hm' } as unknown as EventBody;
    const state = fixture();
    expect(assistant(evolve(state, stamp(state, old, state.last_ts, state.epoch)))).toMatchObject({ thinking: 'hm', provider_data: null });
  });

  test('goes when the text that it was given for is replaced', () => {
    const after = turnOf(replied(fixture(), { thinking: 'hm', provider_data: signed, text: 'A long text.', calls: [call] }));
    const seq = assistant(after)?.seq as number;
    const edit: EventBody = { type: 'compaction', level: 'snip', site: 'proactive_compaction', tokens_before: 2, tokens_after: 1, generation: 1, removed: [], replaced: [{ seq, by: 'Short.' }] };
    expect(assistant(fold(after, { events: [edit], effect: { type: 'settle_tool_calls' } }))).toMatchObject({ text: 'Short.', provider_data: null });
  });
});
