/** Kinds 1 and 7: what becomes of a conversation that outgrows the window. */
import { reply, status, text, tool, type ChatBody, type ScriptedReply } from '@treadle/testkit';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { finish, ofType, play } from './general-checks.ts';
import { startCases, type Cases } from './stage.ts';
import { wires } from './speech.ts';
import { messagesOf } from './wire.ts';

let cases: Cases;
beforeAll(async () => {
  cases = await startCases({
    models: { tiny: { context_window: 2048, max_output_tokens: 256 }, eight: { context_window: 8192 } }, chains: { tiny: ['tiny'], eight: ['eight'] },
    agents: { tiny: { chain: 'tiny', tools: ['t/page'] }, eight: { chain: 'eight', tools: ['t/page'] } },
  });
  await cases.worker();
});
afterAll(async () => { await cases.stop(); });

const page = (n: number, bytes: number) => ({ id: `p${n}`, name: 't__page', args: { n, bytes } });

describe.concurrent('compaction', () => {
  test.each(wires)('C03: on %s never cuts inside a batch of parallel calls, wherever the cut falls', async (wire) => {
    const turns = 8;
    // Sizes that put the cut at every place of a batch; each turn has two results of about 1 KB.
    const sizes = Array.from({ length: 14 }, (_, index) => 600 + 61 * index);
    const script = (bytes: number) => (_: ChatBody, count: number): ScriptedReply =>
      count < turns ? reply({ calls: [page(2 * count, bytes), page(2 * count + 1, bytes + 37 * count)] }) : text('read');
    const live = await Promise.all(sizes.map((bytes) => cases.begin(`C03 ${wire} ${bytes}`, script(bytes), { agent: 'tiny', wire })));
    const levels = new Set<string>();
    const cutAt = new Set<string>();
    for (const each of live) {
      const { run, requests, events } = await finish(cases, each);
      expect(run, each.label).toMatchObject({ status: 'completed', answer: 'read', tool_calls: 2 * turns });
      expect(requests, each.label).toHaveLength(turns + 1);
      const compactions = ofType(events, 'compaction');
      expect(compactions.length, each.label).toBeGreaterThan(0);
      for (const { level } of compactions) levels.add(level);
      for (const request of requests) {
        const [first, second] = messagesOf(request).filter((message) => message.role !== 'system');
        expect(first?.role).toBe('user');
        expect(second?.role).not.toBe('tool');
        cutAt.add(String(messagesOf(request).length));
      }
    }
    // Otherwise only one kind of cut was tried.
    expect(levels.size).toBeGreaterThan(1);
    expect(cutAt.size).toBeGreaterThan(4);
  });

  test('C40: a result of 5 MB is capped before it enters the history, its whole is kept, and the run goes on', async () => {
    const bytes = 5_000_000;
    const { run, requests, events } = await play(cases, 'C40', [tool('c1', 't__page', { n: 1, bytes }), text('long')], { agent: 'eight' });
    expect(run).toMatchObject({ status: 'completed', answer: 'long' });
    expect(requests).toHaveLength(2);
    expect(requests[1]!.rawBody.length).toBeLessThan(8192 * 4);
    const [result] = ofType(events, 'tool_result');
    expect(result!.content.length).toBeLessThanOrEqual(32_768);
    expect(result!.content).toMatch(/^page 1 lorem ipsum[^]*bytes left out[^]*lorem/);
    expect(result).toMatchObject({ truncated_bytes: expect.any(Number) as number, blob: expect.stringMatching(/^[0-9a-f]{64}$/) as string });
    expect(bytes - result!.truncated_bytes!).toBeLessThan(32_768);
  });
});

describe.concurrent('a refusal for length', () => {
  const wordings: readonly (readonly [status: number, error: unknown])[] = [
    [400, 'prompt is too long: 33041 tokens > 32000 maximum'],
    [400, "This model's maximum context length is 8192 tokens, however you requested 9000"],
    [400, 'input length 16911 exceeds the maximum allowed input length of 16384 tokens'],
    [400, "Input length (9120) exceeds model's maximum context length (8192)"],
    [500, 'Prompt has 33,012 tokens, but the configured context size is 32,768 tokens'],
    [400, 'prompt too long; exceeded max context length by 97 tokens'],
    [400, { message: 'no', code: 'context_length_exceeded' }],
    [413, 'request entity too large'],
    [400, { message: 'The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).', code: 400 }],
    [422, 'Range of input length should be [1, 30720]'],
    // It fits, and leaves too little room to answer.
    [400, "This model's maximum context length is 8192 tokens. However, you requested 9174 tokens (8150 in the messages, 1024 in the completion)."],
  ];

  test.each(wordings.map((wording, index) => [index, ...wording] as const))('C35: wording %i is known: one compaction, then a smaller request', async (index, code, error) => {
    const { run, requests, events } = await play(cases, `C35 ${index}`, (_: ChatBody, count: number): ScriptedReply => {
      if (count < 4) return reply({ calls: [page(count, 3000)] });
      return count === 4 ? status(code, {}, { error }) : text('read');
    });
    expect(run).toMatchObject({ status: 'completed', answer: 'read' });
    expect(requests).toHaveLength(6);
    expect(ofType(events, 'error')).toMatchObject([{ error_type: code === 413 ? 'payload_too_large' : 'context_overflow', action: 'reactive_compact', site: 'prompt_too_long' }]);
    expect(ofType(events, 'compaction').map(({ site }) => site)).toEqual(['prompt_too_long']);
    expect(requests[5]!.rawBody.length).toBeLessThan(requests[4]!.rawBody.length);
  });
});

describe.concurrent('the window of the server', () => {
  test('C39: is asked for in every request, and holds it', async () => {
    const { requests } = await play(cases, 'C39', [tool('c1', 't__page', { n: 1, bytes: 2000 }), text('ok')], { agent: 'tiny' });
    for (const request of requests) {
      const { num_ctx } = request.body?.['options'] as { num_ctx: number };
      expect(num_ctx).toBe(2048);
      expect(request.rawBody.length / 4).toBeLessThan(num_ctx);
      expect(request.body).toMatchObject({ truncate: false });
    }
  });

  test('C39: a count far below what was sent is noticed, and the run does not go on blindly', async () => {
    const deaf = reply({ text: 'I have no tools.', usage: { prompt: 600, output: 5 } });
    const { run, events } = await play(cases, 'C39 cut', () => deaf, { input: `Case [[C39 cut]]. ${'A long request. '.repeat(1000)}` });
    expect(ofType(events, 'context_truncated')).toMatchObject([{ model: 'small', counted_tokens: 600 }]);
    expect(run).toMatchObject({ answer: null, status: 'failed', stop_reason: 'context_exhausted' });
  });

  test('C39: with something to leave out, the request is made smaller and sent again', async () => {
    let sizes: number[] = [];
    const script = (body: ChatBody, count: number): ScriptedReply => {
      sizes = [...sizes, JSON.stringify(body).length];
      if (count < 4) return reply({ calls: [page(count, 6000)] });
      return reply({ text: 'read', ...(count === 4 ? { usage: { prompt: 300, output: 5 } } : {}) });
    };
    const { run, events } = await play(cases, 'C39 smaller', script);
    expect(run).toMatchObject({ status: 'completed', answer: 'read' });
    expect(ofType(events, 'context_truncated')).toHaveLength(1);
    expect(ofType(events, 'compaction')[0]).toMatchObject({ site: 'prompt_too_long' });
    expect(sizes[5]).toBeLessThan(sizes[4]!);
  });
});
