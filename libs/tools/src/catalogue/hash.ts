import { createHash } from 'node:crypto';
import { canonicalJson } from '@treadle/core';

interface Shown { readonly name: string; readonly description: string; readonly input_schema: unknown }

/** `sha256:` and the hash of what the model is shown of a tool, the same for any order of keys. */
export function definitionHash({ name, description, input_schema }: Shown): string {
  return `sha256:${createHash('sha256').update(canonicalJson({ name, description, input_schema })).digest('hex')}`;
}
