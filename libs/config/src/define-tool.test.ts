import { expect, test } from 'vitest';
import { z } from 'zod';
import { defineTool, type ToolContext } from './define-tool.ts';

const context: ToolContext = { signal: new AbortController().signal, idempotency_key: 'k', epoch: 3, run_id: 'run_1', tool_use_id: 'c1', progress: () => undefined };

test('a tool is careful unless told otherwise: once, serial', () => {
  const tool = defineTool({ name: 'send', description: 'Sends.', input: { type: 'object', properties: {} }, run: () => 'sent' });
  expect(tool).toMatchObject({ effect: 'once', parallel: 'serial', timeout_ms: null, concurrency: null, input_schema: { type: 'object' } });
});

test('a zod schema becomes the JSON Schema, and run gets what the schema makes of the arguments', async () => {
  const input = z.object({ a: z.number(), unit: z.string().default('m') });
  const tool = defineTool({ name: 'show', description: 'Shows.', input, run: ({ a, unit }, { epoch }) => `${a}${unit}${epoch}` });
  expect(tool.input_schema).toMatchObject({ type: 'object', required: ['a'] });
  expect(tool.input_schema).not.toHaveProperty('$schema');
  expect(await tool.run({ a: 2 }, context)).toBe('2m3');
  await expect(tool.run({ a: 'x' }, context)).rejects.toThrow(/expected number/);
});

test('what could never work is refused where it is written', () => {
  const run = () => 'x';
  expect(() => defineTool({ name: 'a/b', description: '', input: { type: 'object' }, run })).toThrow(/tool name/);
  expect(() => defineTool({ name: 'a', description: '', input: { type: 'string' }, run })).toThrow(/object schema/);
  expect(() => defineTool({ name: 'a', description: '', input: z.string(), run })).toThrow(/object schema/);
  expect(() => defineTool({ name: 'a', description: '', input: { type: 'object' }, timeout_ms: 0, run })).toThrow(/timeout_ms/);
  for (const concurrency of [0, 1.5, 1001, NaN, '2' as unknown as number]) expect(() => defineTool({ name: 'a', description: '', input: { type: 'object' }, concurrency, run })).toThrow(/concurrency must be a whole number from 1 to 1000/);
});
