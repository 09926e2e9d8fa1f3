/** Applies the edits of a protection, each only where its text is found exactly once. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Edit } from './protections.ts';

/** The edited texts by file. Throws `StaleEdit` where a text to be replaced is not there exactly once. */
export function edited(root: string, edits: readonly Edit[]): Map<string, string> {
  const texts = new Map<string, string>();
  for (const { file, find, replace } of edits) {
    const text = texts.get(file) ?? readFileSync(join(root, file), 'utf8');
    const found = text.split(find).length - 1;
    if (found !== 1) throw new StaleEdit(`${file} has ${JSON.stringify(find)} ${found} times, not once`);
    texts.set(file, text.replace(find, () => replace));
  }
  return texts;
}

/** Edits files under `root`; what it answers undoes it. */
export function apply(root: string, edits: readonly Edit[]): () => void {
  const texts = edited(root, edits);
  const before = new Map([...texts.keys()].map((file) => [file, readFileSync(join(root, file), 'utf8')]));
  for (const [file, text] of texts) writeFileSync(join(root, file), text);
  return () => { for (const [file, text] of before) writeFileSync(join(root, file), text); };
}

/** The source has changed beside its edit, which therefore proves nothing any more. */
export class StaleEdit extends Error {}
