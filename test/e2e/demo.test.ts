/** What a stranger does first: `./treadle demo`. */
import { readFileSync } from 'node:fs';
import type { RunEvent } from '@treadle/core';
import { expect, test } from 'vitest';
import { treadle } from './processes.ts';

test('the demo answers from a file that it really read, names it, and says that a scripted model stands in', async () => {
  const { code, stdout, stderr } = await treadle(['demo', '--json']);
  expect(code, stderr).toBe(0);
  const lines = stdout.trim().split('\n').map((line) => JSON.parse(line) as Record<string, unknown>);
  const run = lines.at(-1) as { answer: string; status: string; stop_reason: string };
  const events = lines.slice(0, -1) as unknown as RunEvent[];

  expect(run).toMatchObject({ status: 'completed', stop_reason: 'answered' });
  const source = /Source: (\S+)/.exec(run.answer)![1]!;
  const read = events.flatMap((event) => event.type === 'tool_use' && event.tool_name === 'files/read_text_file' && event.tool_input['path'] === source ? [event] : []);
  expect(read).toHaveLength(1);
  const observation = events.find((event) => event.type === 'tool_result' && event.tool_use_id === read[0]!.tool_use_id);
  const quoted = [...run.answer.matchAll(/^> (.{20,})$/gm)].map((match) => match[1]!);
  expect(quoted.length).toBeGreaterThan(0);
  for (const line of quoted) {
    expect(observation).toMatchObject({ is_error: false, content: expect.stringContaining(line) as string });
    expect(readFileSync(source, 'utf8')).toContain(line);
  }
  expect(events.flatMap((event) => event.type === 'model_request' ? [event.provider] : [])).toContain('scripted');
  expect(events.map((event) => event.seq)).toEqual(events.map((_, index) => index + 1));
  expect(events.at(-1)).toMatchObject({ type: 'run_end', stop_reason: 'answered' });
}, 120_000);

test('for people the demo says plainly that no language model answers, and where the answer came from', async () => {
  const { code, stdout } = await treadle(['demo', 'Which effect class is run again with the same idempotency key?']);
  expect(code).toBe(0);
  expect(stdout).toContain('the built-in scripted model stands in');
  expect(stdout).toMatch(/The answer came from \S+\.md/);
  expect(stdout).toMatch(/completed \(answered\): \d+ turns, \d+ tool calls, \d+ tokens/);
}, 120_000);
