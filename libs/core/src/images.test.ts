/** Images of tools' results in the transcript: named there, moved, taken out, and left behind with their run. */
import { expect, test } from 'vitest';
import { decide } from './decide.ts';
import type { EventBody } from './events.ts';
import { fixture, fold, reply } from './fixture.ts';
import { forAnotherRun } from './history.ts';
import { hasImages, withoutLargestImage } from './images.ts';
import type { Message } from './message.ts';
import { estimateTokens, modelRequest } from './request.ts';
import { specOf } from './state.ts';
import { noJudgement } from './turn-input.ts';
import { noUsage } from './usage.ts';

const use = (id: string): EventBody => ({ type: 'tool_use', tool_name: 'look', tool_input: {}, tool_use_id: id, provider_id: null, execution: 'parallel' });
const attached = (blob: string, bytes: number, media_type = 'image/png') => ({ blob, media_type, bytes });
const result = (id: string, attachments?: ReturnType<typeof attached>[]): EventBody => ({
  type: 'tool_result', tool_use_id: id, tool_name: 'look', content: `of ${id}`, is_error: false, duration: 0, ...(attachments === undefined ? {} : { attachments }) });

const three = fixture({ events: [use('a'), use('b'), use('c'), result('b', [attached('small', 10), attached('letter', 99, 'application/pdf')]), result('a', [attached('large', 500)]), result('c')] });
const images = (messages: readonly Message[]) => messages.flatMap((message) => message.role === 'tool' ? [message.images?.map(({ blob }) => blob)] : []);

test('stand with their result, also one that came before an earlier call’s; what is no image does not', () => {
  expect(images(three.transcript.messages)).toEqual([['large'], ['small'], undefined]);
  expect(hasImages(three.transcript.messages)).toBe(true);
});

test('the largest is taken out by an edit, and a note stands in its place', () => {
  const edit = withoutLargestImage(three.transcript.messages);
  expect(edit).toEqual({ removed: [], replaced: [{ seq: three.transcript.messages.find((message) => message.role === 'tool')!.seq, by: 'of a\n[An image was taken out: the model refused it for its size.]' }] });
  const after = fold(three, { events: [{ type: 'image_removed', generation: 2, reason: 'x', ...edit }], effect: { type: 'pause' } });
  expect(images(after.transcript.messages)).toEqual([undefined, ['small'], undefined]);
});

test('C45: a refusal for size makes them smaller twice, then takes them out', () => {
  let state = three;
  const actions: string[] = [];
  for (let time = 0; time < 4; time++) {
    const failure = { error_type: 'image_too_large', detail: 'too large', retry_after_s: null, partial_text: '', usage: null } as const;
    const decision = decide(state, { type: 'model_failed', unavailable: [], now_s: 0, failure, elapsed_s: 1, timed_out: null, jitter: 0, commands: [] });
    actions.push(...decision.events.flatMap((event) => event.type === 'error' ? [event.action] : []));
    state = fold(state, decision);
    state = fold(state, { events: [{ type: 'turn_start', attempt: 1, worker: 'w' }], effect: { type: 'pause' } });
  }
  expect(actions).toEqual(['shrink_image', 'shrink_image', 'remove_image', 'remove_image']);
  expect(images(state.transcript.messages)).toEqual([undefined, undefined, undefined]);
});

test('count as tokens only for a model that is shown them, and prove nothing about a count', () => {
  const [blind] = specOf(three).chain.models;
  const seeing = fixture({
    spec: { chain: { name: 'c', models: [{ ...blind!, supports_images: true, context_window: 100_000 }] } },
    events: [...Array.from({ length: 5 }, (_, index) => use(`c${index}`)), ...Array.from({ length: 5 }, (_, index) => result(`c${index}`, [attached(`i${index}`, 10)]))] });
  expect(estimateTokens(seeing, 'm1') - estimateTokens({ ...seeing, spec: { ...specOf(seeing), chain: { name: 'c', models: [blind!] } } }, 'm1')).toBe(5 * 768);
  const asked = fold(seeing, { events: [{ type: 'model_request', model: 'm1', provider: 'p', chain: 'c', position: 0, canary: false, skipped: [], estimated_tokens: estimateTokens(seeing, 'm1'), message_count: 7 }], effect: { type: 'pause' } });
  const decision = decide(asked, { type: 'model_replied', unavailable: [], now_s: 0, reply: reply({ text: 'seen', usage: { ...noUsage, input_tokens: 150 } }), judgement: noJudgement, shown_text: '', elapsed_s: 1, commands: [] });
  expect(decision.events.map(({ type }) => type)).not.toContain('context_truncated');
});

test('are said in words where results are told as text', () => {
  const acting = { ...three, spec: { ...specOf(three), protocol: 'json_action' as const } };
  const [model] = specOf(three).chain.models;
  expect(modelRequest(three, { ...model!, supports_tools: false }).messages.filter(({ role }) => role === 'user').slice(1)).toMatchObject([{ content: '[Result of look: of a\n[Its images are not shown.]]' }, { content: '[Result of look: of b\n[Its images are not shown.]]' }, { content: '[Result of look: of c]' }]);
  expect(modelRequest(acting, model!).messages.filter(({ role }) => role === 'host')).toMatchObject([{ content: 'Result of look: of a\n[Its images are not shown.]' }, { content: 'Result of look: of b\n[Its images are not shown.]' }, { content: 'Result of look: of c' }]);
});

test('stay behind with the run that made them', () => {
  const messages = three.transcript.messages.map(forAnotherRun);
  expect(images(messages)).toEqual([undefined, undefined, undefined]);
  expect(messages.flatMap((message) => message.role === 'tool' ? [message.content] : [])).toEqual([
    'of a\n[Its images belong to an earlier run and are not shown.]', 'of b\n[Its images belong to an earlier run and are not shown.]', 'of c']);
});
