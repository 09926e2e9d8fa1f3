import { mkdir, mkdtemp, realpath, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createToolRunner } from '../tool-runner.ts';
import { callOf } from '../test-call.ts';
import { outsideRoots } from './roots.ts';

let dir: string;
beforeAll(async () => {
  dir = await realpath(await mkdtemp(join(tmpdir(), 'roots-')));
  await mkdir(join(dir, 'work/deep'), { recursive: true });
  await mkdir(join(dir, 'workshop'));
  await writeFile(join(dir, 'secret'), 'x');
  await writeFile(join(dir, 'work/own'), 'x');
  await symlink(join(dir, 'secret'), join(dir, 'work/leak'));
  await symlink(dir, join(dir, 'work/up'));
  await symlink(join(dir, 'work/deep'), join(dir, 'inward'));
  await symlink(join(dir, 'nowhere/else'), join(dir, 'work/dangling'));
  await symlink('../planted', join(dir, 'work/planted'));
  await symlink('planted', join(dir, 'work/second'));
  await symlink('deep/fresh', join(dir, 'work/fresh'));
  await symlink('round', join(dir, 'work/round'));
});
afterAll(() => rm(dir, { recursive: true, force: true }));

const look = (path: unknown) => outsideRoots({ path_args: ['path'], roots: [join(dir, 'work')] }, { path });

test.each(['work/own', 'work', 'work/new', 'work/deep/new/newer', 'work/deep/../own', 'inward/x', 'work/..own', 'work/fresh', 'work/a b', 'work/c:d', `work/${'n/'.repeat(40)}x`])('%s is inside', async (path) => {
  expect(await look(join(dir, path))).toBeNull();
  expect(await look(`${dir}/${path}`)).toBeNull();
});

test.each(['secret', 'work/../secret', 'workshop/x', 'work/leak', 'work/up/secret', 'work/up/work/../secret', 'work/up/new', 'work/dangling', 'work/planted', 'work/second', 'work/second/x', 'work/round', 'work\\..\\secret', 'work/deep\\..\\..\\secret', '..', '/etc/passwd'])('%s is outside', async (path) => {
  expect(await look(path.startsWith('/') ? path : `${dir}/${path}`)).toEqual(expect.stringMatching(/outside of what this tool may touch/));
});

test('a relative path counts from where the worker is', async () => {
  expect(await look(relative(process.cwd(), join(dir, 'work/own')))).toBeNull();
  expect(await look('package.json')).not.toBeNull();
});

test.each(['~/x', '~', '~root/x', ' ~/x', 'file:///etc/passwd', 'FILE:/etc/passwd', 'https://a.example/x', 'C:x'])('%j is another place for those who read it so', async (path) => {
  expect(await outsideRoots({ path_args: ['path'], roots: ['.'] }, { path })).toMatch(/no home, no scheme/);
});

test('blanks around a path make no other place of it', async () => {
  const here = (path: string) => outsideRoots({ path_args: ['path'], roots: ['.'] }, { path });
  expect(await here(' /etc/passwd')).toMatch(/outside/);
  expect(await here('\n../x')).toMatch(/outside/);
  expect(await here(' package.json ')).toBeNull();
});

test('every path of a list counts, and what is no path is refused', async () => {
  expect(await look([join(dir, 'work/own'), join(dir, 'work/new')])).toBeNull();
  expect(await look([join(dir, 'work/own'), join(dir, 'secret')])).not.toBeNull();
  for (const path of [7, null, {}, [join(dir, 'work/own'), 7], `${join(dir, 'work/own')}\0`]) expect(await look(path)).toMatch(/must be a path/);
});

test('a call that names a path outside is not begun, and the model is told', async () => {
  const seen: unknown[] = [];
  const tools = createToolRunner({
    functions: [{ name: 'save', description: '', input_schema: { type: 'object' }, run: (input: unknown) => { seen.push(input); return 'saved'; } } as never],
    mcpServers: {}, policies: { save: { parallel: 'path', path_args: ['path'], roots: [join(dir, 'work')] } } });
  const { tools: [save] } = await tools.catalogue({ name: 'a', tools: ['save'] } as never);
  expect(save).toMatchObject({ parallel: 'path', path_args: ['path'] });
  const call = (path: string) => tools.run(callOf(save!, { path }));
  expect(await call(join(dir, 'secret'))).toMatchObject({ is_error: true, settled: true, content: expect.stringContaining('outside') as string });
  expect(seen).toEqual([]);
  expect(await call(join(dir, 'work/a'))).toMatchObject({ is_error: false, content: 'saved' });
  await tools.close();
});
