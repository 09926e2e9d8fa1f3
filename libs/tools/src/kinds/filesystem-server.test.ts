import { mkdtemp, realpath, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { testSpec } from '@treadle/testkit';
import { expect, test } from 'vitest';
import { callOf } from '../test-call.ts';
import { createToolRunner } from '../tool-runner.ts';

test('the real filesystem server is used as the built-in configuration uses it', async () => {
  const folder = await realpath(await mkdtemp(join(tmpdir(), 'treadle-files-')));
  await writeFile(join(folder, 'prices.md'), 'The blue lamp costs 40 francs.\n');
  const manifest = createRequire(import.meta.url).resolve('@modelcontextprotocol/server-filesystem/package.json');
  const args = [join(dirname(manifest), 'dist', 'index.js'), folder];
  const runner = createToolRunner({ functions: [], policies: {}, mcpServers: { files: { command: process.execPath, args, env: {}, trusted: true, concurrency: 8 } } });
  try {
    const { tools, problems } = await runner.catalogue(testSpec({ tools: ['files/read_text_file', 'files/list_directory', 'files/search_files', 'files/write_file'] }));
    expect(problems).toEqual([]);
    expect(tools.map((tool) => [tool.wire_name, tool.effect, tool.parallel])).toEqual([
      ['files__list_directory', 'read', 'parallel'], ['files__read_text_file', 'read', 'parallel'], ['files__search_files', 'read', 'parallel'],
      ['files__write_file', 'idempotent', 'serial'],
    ]);
    const read = tools.find((tool) => tool.name === 'files/read_text_file')!;
    expect(runner.check(read, { path: join(folder, 'prices.md') })).toBeNull();
    expect(runner.check(read, {})).toContain('"path" is missing');
    expect(await runner.run(callOf(read, { path: join(folder, 'prices.md') }))).toEqual({ content: 'The blue lamp costs 40 francs.\n', is_error: false, settled: true });
    expect(await runner.run(callOf(read, { path: '/etc/passwd' }))).toMatchObject({ is_error: true, settled: true, content: expect.stringContaining('Access denied') as string });
  } finally {
    await runner.close();
    await rm(folder, { recursive: true });
  }
});
