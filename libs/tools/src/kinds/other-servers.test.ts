/** Servers that others have written, as their users run them: what they really answer. */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { ToolDefinition } from '@treadle/core';
import type { ToolRunResult } from '@treadle/engine';
import { testSpec } from '@treadle/testkit';
import { expect, test } from 'vitest';
import { callOf } from '../test-call.ts';
import { createToolRunner } from '../tool-runner.ts';

function program(name: string): string {
  return join(dirname(createRequire(import.meta.url).resolve(`@modelcontextprotocol/${name}/package.json`)), 'dist', 'index.js');
}

type Call = (name: string, input: Record<string, unknown>, over?: Partial<ToolDefinition>) => Promise<ToolRunResult>;

async function withServer(server: { readonly args: readonly string[]; readonly env?: Readonly<Record<string, string>>; readonly secrets?: readonly string[] }, use: (call: Call, tools: readonly ToolDefinition[]) => Promise<void>): Promise<void> {
  const { args, env = {}, secrets = [] } = server;
  const runner = createToolRunner({ functions: [], policies: {}, secrets, mcpServers: { s: { command: process.execPath, args, env, trusted: true, concurrency: 8 } } });
  try {
    const { tools } = await runner.catalogue(testSpec({ tools: ['s/*'] }));
    await use((name, input, over) => runner.run(callOf({ ...tools.find((each) => each.name === `s/${name}`)!, ...over }, input)), tools);
  } finally {
    await runner.close();
  }
}

test('the server with everything: text, structure, images, links, progress, and nothing of our environment', async () => {
  process.env.TREADLE_TEST_PRIVATE = 'not for servers';
  await withServer({ args: [program('server-everything'), 'stdio'], env: { GIVEN: 'given to it', TOKEN: 'hush-hush-token' }, secrets: ['hush-hush-token'] }, async (call, tools) => {
    expect(tools.find(({ name }) => name === 's/echo')).toMatchObject({ effect: 'read', parallel: 'parallel', wire_name: 's__echo' });
    expect(await call('echo', { message: 'grüße 🌍' })).toEqual({ content: 'Echo: grüße 🌍', is_error: false, settled: true });
    expect(JSON.parse((await call('get-structured-content', { location: 'New York' })).content)).toMatchObject({ conditions: 'Cloudy' });
    const picture = await call('get-tiny-image', {});
    expect(picture.content).toMatch(/\n\[image: image\/png, \d+ bytes\]\n/);
    expect(picture.attachments).toHaveLength(1);
    expect(Buffer.from(picture.attachments![0]!.bytes).subarray(1, 4).toString()).toBe('PNG');
    expect((await call('get-resource-links', { count: 2 })).content).toMatch(/\[link to .* demo:\/\//);
    // Two seconds of work with a sign of life every half, in a time-out of one.
    expect(await call('trigger-long-running-operation', { duration: 2, steps: 4 }, { timeout_ms: 1_200, max_total_ms: 20_000 })).toMatchObject({ is_error: false, settled: true });
    const env = JSON.parse((await call('get-env', {})).content) as Record<string, string>;
    expect(env).toMatchObject({ GIVEN: 'given to it', TOKEN: '[redacted]' });
    expect(Object.keys(env)).not.toContain('TREADLE_TEST_PRIVATE');
  });
  delete process.env.TREADLE_TEST_PRIVATE;
});

test('the memory server writes what it is told, and reads it again', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'treadle-memory-'));
  const file = join(folder, 'memory.jsonl');
  await withServer({ args: [program('server-memory')], env: { MEMORY_FILE_PATH: file } }, async (call, tools) => {
    expect(tools.find(({ name }) => name === 's/create_entities')).toMatchObject({ effect: 'once', parallel: 'serial' });
    expect(await call('create_entities', { entities: [{ name: 'Ada', entityType: 'person', observations: ['counts'] }] })).toMatchObject({ is_error: false, settled: true });
    expect(JSON.parse((await call('read_graph', {})).content)).toMatchObject({ entities: [{ name: 'Ada', observations: ['counts'] }] });
    expect(await readFile(file, 'utf8')).toContain('Ada');
    expect(await call('add_observations', { observations: [{ entityName: 'Nobody', contents: ['x'] }] })).toMatchObject({ is_error: true, settled: true });
  });
  await rm(folder, { recursive: true });
});
