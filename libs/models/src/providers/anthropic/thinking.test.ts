/** Signed thinking: from a reply, through the log, back to its own model, and to no other. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { AssistantMessage, Message, ModelReply } from '@treadle/core';
import { raw, reply, signatureOf, startModelServer, text, type ModelServer, type ScriptedMessage, type ScriptedReply } from '@treadle/testkit';
import { callOnce, gatewayTo, named, requestOf, toolNamed } from '../../testing.ts';

let server: ModelServer;

beforeEach(async () => {
  server = await startModelServer({ dialect: 'anthropic', script: [] });
});

afterEach(() => server.close());

async function ask(scripted: ScriptedReply, messages: readonly Message[], model = 'a-1', name = 'small'): Promise<ModelReply> {
  server.add(scripted);
  const gateway = gatewayTo(server.url);
  const request = requestOf({ messages, tools: [toolNamed('save')], model: { ...requestOf().model, name: 'small', provider: 'anthropic', model } }, 'anthropic');
  const { outcome } = await callOnce(gateway, { ...request, messages: messages.map((message) => (message.role === 'assistant' ? { ...message, model: name } : message)) });
  gateway.close();
  if (outcome.type !== 'replied') throw new Error(JSON.stringify(outcome));
  return outcome.reply;
}

const question: Message = { role: 'user', content: 'Save it.' };

/** As the core keeps it, once through JSON. */
function kept({ text: words, thinking, provider_data, calls }: ModelReply): AssistantMessage {
  return JSON.parse(JSON.stringify({
    role: 'assistant', text: words.trim() === '' ? '' : words, thinking, provider_data, model: 'small', calls: calls.map((call) => ({ tool_use_id: call.provider_id, tool_name: 'save', tool_input: call.input })),
  })) as AssistantMessage;
}

const results = (message: AssistantMessage): Message[] => message.calls.map((call) => ({ role: 'tool', tool_use_id: call.tool_use_id, tool_name: 'save', content: 'ok', is_error: false }));

/** The assistant's blocks of the last request. */
function sent(): readonly { readonly type: string; readonly [field: string]: unknown }[] {
  const messages = server.requests.at(-1)?.body?.messages ?? [];
  return (messages.find((message) => message.role === 'assistant')?.content ?? []) as ReturnType<typeof sent>;
}

const thought: ScriptedMessage = { thinking: 'I shall save it. 🌍', text: 'Saving.', calls: [{ id: 'c1', name: 'save', args: { a: 1 } }, { id: 'c2', name: 'save', args: {} }] };

describe('signed thinking', () => {
  it('goes back unchanged to its own model, in its place', async () => {
    const first = kept(await ask(reply(thought), [question]));
    await ask(text('done'), [question, first, ...results(first)]);
    expect(sent()).toEqual([
      { type: 'thinking', thinking: thought.thinking, signature: expect.any(String) as string }, { type: 'text', text: 'Saving.' },
      { type: 'tool_use', id: 'c1', name: 'save', input: { a: 1 } }, { type: 'tool_use', id: 'c2', name: 'save', input: {} },
    ]);
    server.assertUsedUp();
  });

  it('goes back unchanged also where the model spoke behind its calls: that text stands in front of them', async () => {
    const chunks = ['thinking', 'text', 'tool_use', 'text'].flatMap((type, index) => [
      named({ type: 'content_block_start', index, content_block: type === 'tool_use' ? { type, id: 'c1', name: 'save', input: {} } : { type } }),
      ...(type === 'text' ? [named({ type: 'content_block_delta', index, delta: { type: 'text_delta', text: `text ${index}` } })] : []),
      ...(type === 'thinking' ? [named({ type: 'content_block_delta', index, delta: { type: 'thinking_delta', thinking: 'hm' } }), named({ type: 'content_block_delta', index, delta: { type: 'signature_delta', signature: signatureOf('a-1', 'hm') } })] : []),
      named({ type: 'content_block_stop', index }),
    ]);
    const end = [named({ type: 'message_delta', delta: { stop_reason: 'tool_use' }, usage: { output_tokens: 9 } }), named({ type: 'message_stop' })];
    const first = kept(await ask(raw([named({ type: 'message_start', message: {} }), ...chunks, ...end]), [question]));
    await ask(text('done'), [question, first, ...results(first)]);
    expect(sent()).toEqual([
      { type: 'thinking', thinking: 'hm', signature: signatureOf('a-1', 'hm') }, { type: 'text', text: 'text 1' }, { type: 'text', text: 'text 3' }, { type: 'tool_use', id: 'c1', name: 'save', input: {} },
    ]);
    server.assertUsedUp();
  });

  it('that is hidden goes back, too', async () => {
    const first = kept(await ask(reply({ ...thought, redacted_thinking: 'secret' }), [question]));
    await ask(text('done'), [question, first, ...results(first)]);
    expect(sent().map((block) => block.type)).toEqual(['thinking', 'redacted_thinking', 'text', 'tool_use', 'tool_use']);
    server.assertUsedUp();
  });

  it('between blank text and calls goes back without the text that the log does not keep', async () => {
    const first = kept(await ask(reply({ ...thought, text: '\n\n' }), [question]));
    await ask(text('done'), [question, first, ...results(first)]);
    expect(sent().map((block) => block.type)).toEqual(['thinking', 'tool_use', 'tool_use']);
    server.assertUsedUp();
  });

  it('in several blocks goes back in their order', async () => {
    const block = (index: number, content_block: object, ...deltas: readonly object[]) => [
      { type: 'content_block_start', index, content_block }, ...deltas.map((delta) => ({ type: 'content_block_delta', index, delta })), { type: 'content_block_stop', index },
    ];
    const thinks = (index: number, thinking: string) => block(index, { type: 'thinking', thinking: '', signature: '' }, { type: 'thinking_delta', thinking }, { type: 'signature_delta', signature: `sig${index}` });
    const streamed = [
      { type: 'message_start', message: {} }, ...thinks(0, 'one'), ...block(1, { type: 'text', text: '' }, { type: 'text_delta', text: 'A' }), ...thinks(2, 'two'),
      ...block(3, { type: 'tool_use', id: 'c', name: 'save', input: {} }), { type: 'message_delta', delta: { stop_reason: 'tool_use' } }, { type: 'message_stop' },
    ];
    const first = kept(await ask(raw(streamed.map(named)), [question]));
    expect(first).toMatchObject({ thinking: 'onetwo', text: 'A' });
    await expect(ask(text('done'), [question, first, ...results(first)])).rejects.toThrow(/history_invalid/);
    expect(sent()).toMatchObject([{ thinking: 'one', signature: 'sig0' }, { type: 'text', text: 'A' }, { thinking: 'two', signature: 'sig2' }, { type: 'tool_use', id: 'c' }]);
  });

  it('C69: goes to no other model, neither of another name nor behind the same one; text and calls do', async () => {
    const first = kept(await ask(reply(thought), [question]));
    for (const [model, name] of [['b-1', 'small'], ['a-1', 'other'], ['b-1', 'other']] as const) {
      await ask(text('done'), [question, first, ...results(first)], model, name);
      expect(sent().map((block) => block.type)).toEqual(['text', 'tool_use', 'tool_use']);
    }
    server.assertUsedUp();
  });

  it('stays away where the reply is no longer what it was', async () => {
    const first = kept(await ask(reply(thought), [question]));
    const changed: AssistantMessage[] = [{ ...first, text: 'Short.' }, { ...first, thinking: 'x' }, { ...first, calls: first.calls.slice(1) }, { ...first, provider_data: { wire: 'other' } }, { ...first, provider_data: 'x' }];
    for (const message of changed) {
      await ask(text('done'), [question, message, ...results(message)]);
      expect(sent().map((block) => block.type)).not.toContain('thinking');
    }
    server.assertUsedUp();
  });

  it('is nothing to keep in a reply without thinking', async () => {
    expect((await ask(text('plain'), [question])).provider_data).toBeNull();
  });
});
