import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readdir, readFile, rm, symlink, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { archivedEvents, archivedSegment, freshRunId } from '@treadle/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createArchive, createFileObjects, type ObjectStore } from './index.ts';

let directory: string;
beforeEach(async () => { directory = await mkdtemp(join(tmpdir(), 'treadle-files-')); });
afterEach(() => rm(directory, { recursive: true, force: true }));

async function keysIn(objects: ObjectStore, prefix: string, afterKey: string): Promise<string[]> {
  const keys: string[] = [];
  for await (const key of objects.list(prefix, afterKey)) keys.push(key);
  return keys;
}

describe('file objects', () => {
  it('are created once and replaced as a whole', async () => {
    const objects = createFileObjects(directory);
    expect(await objects.put('a/b', Buffer.from('one'), 'create')).toBe('stored');
    expect(await objects.put('a/b', Buffer.from('two'), 'create')).toBe('exists');
    expect(await readFile(join(directory, 'a/b'), 'utf8')).toBe('one');
    expect(await objects.put('a/b', Buffer.from('three'), 'replace')).toBe('stored');
    expect(await readFile(join(directory, 'a/b'), 'utf8')).toBe('three');
    expect(await readdir(join(directory, '.tmp'))).toEqual([]);
  });

  it('let one of many creators win', async () => {
    const objects = createFileObjects(directory);
    const answers = await Promise.all(Array.from({ length: 20 }, (_, n) => objects.put('k', Buffer.from(String(n)), 'create')));
    expect(answers.filter((answer) => answer === 'stored')).toHaveLength(1);
    expect(await readFile(join(directory, 'k'), 'utf8')).toBe(String(answers.indexOf('stored')));
  });

  it('list in the order of keys, across directories, by prefix and after a key', async () => {
    const objects = createFileObjects(directory);
    const keys = ['a-b', 'a/1', 'a/10', 'a/2/x', 'a0', 'b/1'];
    for (const key of [...keys].reverse()) await objects.put(key, Buffer.from(key), 'create');
    expect(await keysIn(objects, '', '')).toEqual(keys);
    expect(await keysIn(objects, '', 'a/10')).toEqual(['a/2/x', 'a0', 'b/1']);
    expect(await keysIn(objects, 'a/', 'a/2/w')).toEqual(['a/2/x']);
    expect(await keysIn(objects, 'a/1', '')).toEqual(['a/1', 'a/10']);
    expect(await keysIn(objects, 'none/', '')).toEqual([]);
  });

  it('refuse keys that lead out of the directory or into the store’s own', async () => {
    const objects = createFileObjects(join(directory, 'inner'));
    for (const key of ['../x', 'a/../../x', '/etc/passwd', '.tmp/x', 'a/.hidden', 'a\0b', 'a//b', '']) {
      await expect(objects.put(key, Buffer.from('x'), 'create')).rejects.toMatchObject({ kind: 'refused' });
      await expect(objects.get(key, 10)).rejects.toMatchObject({ kind: 'refused' });
      await expect(objects.delete(key)).rejects.toMatchObject({ kind: 'refused' });
    }
    await expect(keysIn(objects, '../', '')).rejects.toMatchObject({ kind: 'refused' });
    expect(await readdir(directory)).toEqual([]);
  });

  it('do not follow a link that stands under a key', async () => {
    await writeFile(join(directory, 'secret'), 'secret');
    await mkdir(join(directory, 'inner'));
    await symlink(join(directory, 'secret'), join(directory, 'inner/link'));
    await expect(createFileObjects(join(directory, 'inner')).get('link', 100)).rejects.toMatchObject({ kind: 'refused' });
  });

  it('are missing rather than broken where nothing is, and are removed once', async () => {
    const objects = createFileObjects(directory);
    await objects.put('a', Buffer.from('x'), 'create');
    expect(await objects.get('a/b', 10)).toBeNull();
    expect(await objects.get('n', 10)).toBeNull();
    await objects.delete('a');
    await objects.delete('a');
    expect(await objects.get('a', 10)).toBeNull();
  });

  it('refuse what is larger than the caller takes, and name the error of the file system', async () => {
    const objects = createFileObjects(directory);
    await objects.put('a', Buffer.alloc(100), 'create');
    await expect(objects.get('a', 99)).rejects.toMatchObject({ kind: 'refused' });
    await expect(objects.put('a/b', Buffer.from('x'), 'create')).rejects.toThrow(/^archive store refused: PUT a\/b: E[A-Z]+$/);
  });

  it('say at once where their folder cannot be made, instead of never', async () => {
    await expect(createFileObjects('/proc/nothing/here').put('a', Buffer.from('x'), 'create')).rejects.toMatchObject({ kind: 'refused' });
  });

  it('take their folders with the last object, and make them again beside somebody who does so', async () => {
    const objects = createFileObjects(directory);
    await objects.put('a/b/c', Buffer.from('x'), 'create');
    await objects.put('a/d', Buffer.from('x'), 'create');
    await objects.delete('a/b/c');
    expect(await readdir(join(directory, 'a'))).toEqual(['d']);
    await objects.delete('a/d');
    expect(await readdir(directory)).toEqual(['.tmp']);
    const busy = Array.from({ length: 40 }, async (_, n) => {
      await objects.put(`x/y/${n}`, Buffer.from('x'), 'create');
      await objects.delete(`x/y/${n}`);
    });
    await Promise.all(busy);
    expect(await readdir(directory)).toEqual(['.tmp']);
  });

  it('ignore what a crash left while writing, and sweep it when it is old', async () => {
    const tmp = join(directory, '.tmp');
    await mkdir(tmp);
    await writeFile(join(tmp, 'old'), 'half of a segm');
    await writeFile(join(tmp, 'young'), 'half of a segm');
    await utimes(join(tmp, 'old'), 1, 1);
    const archive = createArchive(createFileObjects(directory));
    const run_id = freshRunId();
    await archive.putSegment(archivedSegment(run_id, 1, 2));
    expect(await archive.events(run_id, 0, 10)).toEqual(archivedEvents(run_id, 1, 2));
    expect(await keysIn(createFileObjects(directory), '', '')).toHaveLength(1);
    expect(await readdir(tmp)).toEqual(['young']);
  });
});

/** Writes objects of one repeated byte without end, and names each after it was answered. */
const writer = (sources: string, into: string): string => `
  const { createFileObjects } = await import(${JSON.stringify(sources)});
  const objects = createFileObjects(${JSON.stringify(into)});
  for (let n = 0; ; n++) {
    await Promise.all([0, 1, 2, 3].map((lane) => objects.put('k/' + n + '-' + lane, Buffer.alloc(300000, n % 256), lane === 0 ? 'replace' : 'create')));
    process.stdout.write(n + '\\n');
  }`;

describe('a process that is killed while it writes files', () => {
  it('leaves no part of an object under a key, and everything that was answered', async () => {
    const sources = new URL('./file-objects.ts', import.meta.url).href;
    for (const afterRounds of [1, 2, 4, 7]) {
      const into = join(directory, String(afterRounds));
      const child = spawn(process.execPath, ['--input-type=module', '-e', writer(sources, into)], { stdio: ['ignore', 'pipe', 'inherit'] });
      const exited = once(child, 'exit');
      let answered = '';
      for await (const chunk of child.stdout.setEncoding('utf8')) {
        answered += String(chunk);
        if (answered.split('\n').length > afterRounds) child.kill('SIGKILL');
      }
      expect((await exited)[1]).toBe('SIGKILL');

      const objects = createFileObjects(into);
      const keys = await keysIn(objects, '', '');
      for (const key of keys) {
        const round = Number(/^k\/(\d+)-/.exec(key)?.[1]);
        expect(Buffer.compare(await objects.get(key, 1_000_000) ?? Buffer.alloc(0), Buffer.alloc(300_000, round % 256))).toBe(0);
      }
      const rounds = answered.split('\n').slice(0, -1);
      expect(rounds.length).toBeGreaterThanOrEqual(afterRounds);
      for (const round of rounds) expect(keys).toEqual(expect.arrayContaining([0, 1, 2, 3].map((lane) => `k/${round}-${lane}`)));
    }
  });
});
