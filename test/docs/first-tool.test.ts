/** The guide docs/first-tool.md does what it says: its file compiles, its commands run, and a killed worker costs nothing. */
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { RunEvent } from '@treadle/core';
import { startModelServer, text, tool, type ChatBody, type ModelServer } from '@treadle/testkit';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { root, startStage, treadle, until, type Stage } from '../e2e/processes.ts';

const guide = readFileSync(join(root, 'docs/first-tool.md'), 'utf8');
const blocks = (language: string): string[] => [...guide.matchAll(new RegExp(`\`\`\`${language}\\n([^]*?)\`\`\``, 'g'))].map((match) => match[1]!);
const [config = '', pause = ''] = blocks('ts');
const behind = '    return `${item} is on the list.`;';

let dir: string;
let model: ModelServer;
let stage: Stage | null = null;
beforeAll(async () => {
  // Inside of the project, where the compiler finds its packages.
  mkdirSync(join(root, 'dist'), { recursive: true });
  dir = mkdtempSync(join(root, 'dist/first-tool-'));
  model = await startModelServer({ dialect: 'ollama', script: (body: ChatBody) => (JSON.stringify(body.messages).includes('is on the list.') ? text('Milk is on the list.') : tool('c', 'add_item', { item: 'milk' })) });
});
afterEach(async () => {
  await stage?.stop();
  stage = null;
});
afterAll(async () => {
  await model.close();
  rmSync(dir, { recursive: true, force: true });
});

async function started(name: string, source: string): Promise<Stage> {
  writeFileSync(join(dir, `${name}.config.ts`), source);
  return stage = await startStage({ model: {}, env: { TREADLE_CONFIG: join(dir, `${name}.config.ts`), OLLAMA_HOST: model.url, SHOPPING_LIST: join(dir, `${name}.txt`) } });
}
const list = (name: string): string[] => readFileSync(join(dir, `${name}.txt`), 'utf8').trimEnd().split('\n').map((line) => line.split('\t')[1]!);

test('its file compiles', () => {
  writeFileSync(join(dir, 'compiled.config.ts'), config);
  writeFileSync(join(dir, 'tsconfig.json'), JSON.stringify({ extends: join(root, 'tsconfig.base.json'), include: ['compiled.config.ts'], compilerOptions: { types: ['node'] } }));
  const { status, stdout } = spawnSync(process.execPath, [join(root, 'node_modules/typescript7/bin/tsc'), '--noEmit', '-p', dir], { encoding: 'utf8' });
  expect([stdout, status]).toEqual(['', 0]);
});

test('its command puts milk on the list', async () => {
  const here = await started('usual', config);
  await here.startWorker();
  const [, command] = blocks('sh')[0]!.trimEnd().split('\n');
  const [, words, agent] = /^\.\/treadle run "([^"]+)" --agent (\w+)$/.exec(command!)!;
  const done = await treadle(['run', words!, '--agent', agent!], { env: { TREADLE_URL: here.api.url } });
  expect(done).toMatchObject({ code: 0, stdout: expect.stringContaining('Milk is on the list.') as string });
  expect(done.stdout).toContain('add_item');
  expect(list('usual')).toEqual(['milk']);
}, 60_000);

test('its pause, and a worker killed in it, leave the item there once', async () => {
  expect(config).toContain(behind);
  const here = await started('killed', config.replace(behind, `${pause}${behind}`));
  const worker = await here.startWorker();
  const { id } = await here.client.createRun({ agent: 'shopper', input: 'Put milk on the shopping list.' });
  await until('the line is written', () => { try { return list('killed').length === 1; } catch { return false; } });
  worker.kill();
  await here.startWorker();
  const events: RunEvent[] = [];
  for await (const event of here.client.events(id)) events.push(event);
  expect(events.at(-1)).toMatchObject({ type: 'run_end', status: 'completed' });
  expect(events.filter(({ type }) => type === 'turn_start')).toHaveLength(3);
  expect(list('killed')).toEqual(['milk']);
}, 90_000);
