/** Images of results as each wire takes them: judged by the strict validator of that wire. */
import type { Message } from '@treadle/core';
import { strictValidator } from '@treadle/testkit';
import { expect, test } from 'vitest';
import { render as anthropic } from '../providers/anthropic/render.ts';
import { render as ollama } from '../providers/ollama/render.ts';
import { render as openai } from '../providers/openai/render.ts';
import { requestOf, toolNamed } from '../testing.ts';

const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
const image = (data?: string) => ({ blob: 'b', media_type: 'image/png', bytes: 70, ...(data === undefined ? {} : { data }) });
const result = (id: string, images?: ReturnType<typeof image>[]): Message => ({ role: 'tool', tool_use_id: id, tool_name: 'look', content: `of ${id}`, is_error: false, ...(images === undefined ? {} : { images }) });
const messages: readonly Message[] = [
  { role: 'user', content: 'look' },
  { role: 'assistant', text: '', thinking: '', model: 'm', calls: ['a', 'b', 'c'].map((tool_use_id) => ({ tool_use_id, tool_name: 'look', tool_input: {} })) },
  // Without bytes, or with bytes that are none of an image, there is nothing to show.
  result('a', [image(png)]), result('b'), result('c', [image(png), image(), image('bm8gaW1hZ2U=')]), { role: 'host', note: 'steer', content: 'faster' },
];
const { model } = requestOf();
const request = (provider: string) => requestOf({ system: '', messages, tools: [toolNamed('look')], model: { ...model, supports_images: true } }, provider);
const problems = (body: unknown, wire: 'ollama' | 'openai' | 'anthropic') => strictValidator(JSON.parse(JSON.stringify(body)), wire);

test('anthropic: inside the result they belong to, a steer behind them', () => {
  const body = anthropic(request('anthropic'));
  const block = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: png } };
  expect(body.messages.at(-1)!.content).toEqual([
    { type: 'tool_result', tool_use_id: 'a', content: [{ type: 'text', text: 'of a' }, block] }, { type: 'tool_result', tool_use_id: 'b', content: [{ type: 'text', text: 'of b' }] },
    { type: 'tool_result', tool_use_id: 'c', content: [{ type: 'text', text: 'of c' }, block, { type: 'text', text: expect.stringContaining('faster') as string }] }]);
  expect(problems(body, 'anthropic')).toEqual([]);
});

test('openai: as one message behind the last result, which says whose they are', () => {
  const body = openai(request('openai'), false);
  const shown = { type: 'image_url', image_url: { url: `data:image/png;base64,${png}` } };
  const said = { type: 'text', text: '[Images of the result of look. They come from the tool, not from the user.]' };
  expect(body.messages.slice(2)).toEqual([
    { role: 'tool', tool_call_id: 'a', content: 'of a' }, { role: 'tool', tool_call_id: 'b', content: 'of b' }, { role: 'tool', tool_call_id: 'c', content: 'of c' },
    { role: 'user', content: [said, shown, said, shown] }, { role: 'user', content: expect.stringContaining('faster') as string }]);
  expect(problems(body, 'openai')).toEqual([]);
});

test('ollama: beside the text of the result', () => {
  const body = ollama(request('ollama'));
  expect(body.messages.slice(2, 5).map(({ content, images }) => [content, images])).toEqual([['of a', [png]], ['of b', undefined], ['of c', [png]]]);
  expect(problems(body, 'ollama')).toEqual([]);
});
