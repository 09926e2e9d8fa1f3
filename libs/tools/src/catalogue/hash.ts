import { createHash } from 'node:crypto';

interface Shown { readonly name: string; readonly description: string; readonly input_schema: unknown }

/** `sha256:` and the hash of what the model is shown of a tool, the same for any order of keys. */
export function definitionHash({ name, description, input_schema }: Shown): string {
  return `sha256:${createHash('sha256').update(canonicalJson({ name, description, input_schema })).digest('hex')}`;
}

function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (_key, each: unknown) => {
    if (typeof each !== 'object' || each === null || Array.isArray(each)) return each;
    return Object.fromEntries(Object.entries(each).sort(([a], [b]) => (a < b ? -1 : 1)));
  });
}
