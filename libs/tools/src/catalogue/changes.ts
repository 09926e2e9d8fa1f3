/**
 * What has become of a run's tools since they were pinned. A tool that its server no longer has is gone, one that fits the agent's patterns
 * and was not there is new; one that is described otherwise now stays as it was pinned, since a person or a test has looked at that.
 *
 * What goes back and forth (two releases of a server that answer in turns) is followed a few times only. After that a tool that comes and
 * goes stays offered, and new descriptions or instructions are not told any more.
 */
import { plainName, type ToolDefinition } from '@treadle/core';
import type { KnownChanges, ToolCatalogue, ToolChanges } from '@treadle/engine';
import { freeWireName } from './wire-name.ts';

export interface Compared {
  readonly pinned: readonly ToolDefinition[];
  readonly known: KnownChanges;
  /** `server/` of each server that could be asked. */
  readonly heard: readonly string[];
  /** What these offer, as it would be pinned now. */
  readonly now: Required<ToolCatalogue>;
}

/** How often one tool, or one server's words, may change within a run. */
const mostTimes = 3;

/** Null where nothing has changed, or nothing that is not known. */
export function toolChanges({ pinned, known, heard, now }: Compared): ToolChanges | null {
  const offered = new Map(now.tools.map((tool) => [tool.name, tool]));
  const restless = (name: string): boolean => (known.times[name] ?? 0) >= mostTimes;
  const asked = pinned.filter(({ name }) => heard.some((beginning) => name.startsWith(beginning)) && !restless(name));
  const gone = asked.filter(({ name }) => !offered.has(name)).map(({ name }) => name);
  const kept = asked.flatMap(({ name, hash }) => {
    const found = offered.get(name)?.hash;
    return found === undefined || found === (known.kept[name] ?? hash) ? [] : [{ name, hash: found }];
  });
  const words = heard.filter((beginning) => !restless(beginning)).flatMap((beginning) => {
    const server = beginning.slice(0, -1);
    const said = wordOf(now.instructions, server);
    return said === wordOf(known.instructions, server) ? [] : [[server, said] as const];
  });
  const fresh = freshTools(pinned, known, now.tools);
  const problems = now.problems.filter((problem) => !known.problems.includes(problem));
  if (gone.length + kept.length + words.length + fresh.length + problems.length === 0) return null;
  return {
    tools: [...pinned.filter(({ name }) => !gone.includes(name)), ...fresh], gone, kept, problems,
    ...(words.length === 0 ? {} : { instructions: Object.fromEntries(words) }),
  };
}

/** A server may be named as what every object has. */
function wordOf(instructions: Readonly<Record<string, string>>, server: string): string {
  return Object.hasOwn(instructions, server) ? instructions[server] ?? '' : '';
}

/** A name on the wire is never given to another tool within a run: the conversation has calls under it. */
function freshTools(pinned: readonly ToolDefinition[], { gone }: KnownChanges, offered: readonly ToolDefinition[]): ToolDefinition[] {
  const before = new Set(pinned.map(({ name }) => name));
  const wires = pinned.map(({ wire_name }) => wire_name);
  return offered.filter(({ name }) => !before.has(name)).map((tool) => {
    const taken = new Set([...wires, ...gone.filter((name) => name !== tool.name).map(plainName)]);
    const wire_name = freeWireName(tool.name, tool.wire_name, taken);
    wires.push(wire_name);
    return wire_name === tool.wire_name ? tool : { ...tool, wire_name };
  });
}
