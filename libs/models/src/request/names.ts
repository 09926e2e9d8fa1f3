/** Names of tools and ids of calls as a wire takes them, always mapped the same way. */
import { createHash } from 'node:crypto';
import type { ToolDefinition } from '@treadle/core';

export type WireNames = ReadonlyMap<string, string>;

export function wireNames(tools: readonly ToolDefinition[]): WireNames {
  return new Map(tools.map((tool) => [tool.name, tool.wire_name]));
}

/** The offered tool's wire name; a name that no tool has (invented, or gone since) made legal. */
export function wireName(name: string, names: WireNames): string {
  const known = names.get(name);
  if (known !== undefined) return known;
  const legal = name.replaceAll('/', '__').replaceAll(/[^a-zA-Z0-9_-]/gu, '_').slice(0, 64);
  return legal === '' ? 'unnamed_tool' : legal;
}

/**
 * An id of letters, digits, `_` and `-` on a bounded length: itself where it is legal, else what is legal of it and a hash of the
 * whole, so that two ids that look alike stay two.
 */
export function wireId(id: string, longest: number): string {
  if (id.length > 0 && id.length <= longest && /^[a-zA-Z0-9_-]+$/.test(id)) return id;
  const hash = createHash('sha256').update(id).digest('hex').slice(0, 10);
  return `${id.replaceAll(/[^a-zA-Z0-9_-]/gu, '_').slice(0, longest - hash.length - 1)}_${hash}`;
}
