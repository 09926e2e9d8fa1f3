/**
 * Against a real Ollama, where one answers at `OLLAMA_HOST`; counted as skipped elsewhere, never faked.
 */
import { expect, test } from 'vitest';
import { createModelGateway } from '../../gateway.ts';

const host = process.env.OLLAMA_HOST ?? '';
const base_url = host === '' || host.includes('://') ? host : `http://${host}`;
const model = process.env.OLLAMA_MODEL ?? 'qwen3:4b';
const answers = base_url !== '' && await fetch(`${base_url}/api/version`, { signal: AbortSignal.timeout(3000) }).then((response) => response.ok, () => false);

const spec = { name: 'live', provider: 'ollama', model, context_window: 8192, max_output_tokens: 512, supports_tools: true, supports_images: false };
const connection = { base_url, first_token_timeout_ms: 120_000, idle_timeout_ms: 60_000, total_timeout_ms: 180_000 };
const add = {
  name: 'add', wire_name: 'add', description: 'Adds two numbers.', effect: 'read' as const, parallel: 'parallel' as const, timeout_ms: 1000, hash: 'x',
  input_schema: { type: 'object', properties: { a: { type: 'number' }, b: { type: 'number' } }, required: ['a', 'b'] },
};

test.skipIf(!answers)('a live model calls a tool and answers from its result', async () => {
  const gateway = createModelGateway({ connections: { live: connection } });
  const question = { role: 'user' as const, content: 'Use the tool add to add 17 and 25, then tell me the sum.' };
  const call = (messages: Parameters<typeof gateway.call>[0]['request']['messages']) =>
    gateway.call({ request: { model: spec, system: 'You must use the tools.', messages, tools: [add] }, signal: new AbortController().signal, onText: () => undefined });
  const first = await call([question]);
  if (first.type !== 'replied') throw new Error(first.failure.detail);
  expect(first.reply.calls[0]).toMatchObject({ name: 'add', input: { a: 17, b: 25 } });
  const calls = [{ tool_use_id: 'c1', tool_name: 'add', tool_input: { a: 17, b: 25 } }];
  const second = await call([question, { role: 'assistant', text: '', thinking: '', calls, model: 'live' }, { role: 'tool', tool_use_id: 'c1', tool_name: 'add', content: '42', is_error: false }]);
  expect(second).toMatchObject({ type: 'replied', reply: { text: expect.stringContaining('42') as string } });
  gateway.close();
}, 300_000);
