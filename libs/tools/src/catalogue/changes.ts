/**
 * What has become of a run's tools since they were pinned. A tool that its server no longer has is gone, one that fits the agent's patterns
 * and was not there is new; one that is described otherwise now stays as it was pinned, since a person or a test has looked at that.
 */
import type { ToolDefinition } from '@treadle/core';
import type { ToolChanges } from '@treadle/engine';

export interface Compared {
  readonly pinned: readonly ToolDefinition[];
  /** What the servers offer that could be asked, as it would be pinned now. */
  readonly offered: readonly ToolDefinition[];
  /** `server/` of each of those servers. */
  readonly heard: readonly string[];
  /** Of tools that are known to be described otherwise: the hash of what they are now. */
  readonly kept: Readonly<Record<string, string>>;
  /** By server, the hash of what it says about how to use it: as it is known, and now. */
  readonly instructed: { readonly before: Readonly<Record<string, string>>; readonly now: Readonly<Record<string, string>> };
}

/** Null where nothing has changed. */
export function toolChanges({ pinned, offered, heard, kept, instructed }: Compared): ToolChanges | null {
  const now = new Map(offered.map((tool) => [tool.name, tool]));
  const before = new Set(pinned.map(({ name }) => name));
  const wires = new Set(pinned.map(({ wire_name }) => wire_name));
  const asked = pinned.filter(({ name }) => heard.some((beginning) => name.startsWith(beginning)));
  const gone = asked.filter(({ name }) => !now.has(name)).map(({ name }) => name);
  const otherwise = asked.flatMap(({ name, hash }) => {
    const found = now.get(name)?.hash;
    return found === undefined || found === (kept[name] ?? hash) ? [] : [{ name, hash: found }];
  });
  // A name on the wire is never given to another tool within a run.
  const fresh = offered.filter(({ name, wire_name }) => !before.has(name) && !wires.has(wire_name));
  const servers = heard.map((beginning) => beginning.slice(0, -1));
  const instructions = Object.fromEntries(servers.flatMap((server) => {
    const now_ = instructed.now[server] ?? '';
    return now_ === (instructed.before[server] ?? '') ? [] : [[server, now_] as const];
  }));
  const otherWords = Object.keys(instructions).length > 0;
  if (gone.length === 0 && otherwise.length === 0 && fresh.length === 0 && !otherWords) return null;
  return { tools: [...pinned.filter(({ name }) => !gone.includes(name)), ...fresh], gone, kept: otherwise, ...(otherWords ? { instructions } : {}) };
}
