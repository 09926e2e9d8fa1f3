import { createHash } from 'node:crypto';
import { canonicalJson } from '@treadle/core';

interface Shown { readonly name: string; readonly description: string; readonly input_schema: unknown }

/** `sha256:` and the hash of what the model is shown of a tool, the same for any order of keys. Nobody changes a tool that was hashed. */
export function definitionHash(tool: Shown): string {
  const known = hashes.get(tool);
  if (known !== undefined) return known;
  const { name, description, input_schema } = tool;
  const hash = `sha256:${createHash('sha256').update(canonicalJson({ name, description, input_schema })).digest('hex')}`;
  hashes.set(tool, hash);
  return hash;
}

export function textHash(text: string): string {
  return `sha256:${createHash('sha256').update(text).digest('hex')}`;
}

/** Servers' tools are looked at in each turn. */
const hashes = new WeakMap<Shown, string>();
