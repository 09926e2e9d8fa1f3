/**
 * What of a batch may run together: a pure plan, the same for the same batch, whoever makes it.
 *
 * 1  Groups run one after the other, in the order of the calls; a later call never runs before an earlier one that it might depend on.
 * 2  `parallel` calls share a group. `path` calls do where their paths do not overlap, or nobody of them writes. Anything else is alone.
 * 3  A path that is not known is every path.
 */
import type { ToolDefinition } from './agent-spec.ts';
import { own } from './own.ts';
import type { OpenCall } from './state.ts';

type Tools = readonly Pick<ToolDefinition, 'name' | 'effect' | 'path_args'>[];

/** Calls of one reply that have no result, in its order → groups. */
export function planGroups(calls: readonly OpenCall[], tools: Tools): OpenCall[][] {
  const groups: OpenCall[][] = [];
  for (const call of calls) {
    const last = groups.at(-1);
    if (last?.every((other) => together(other, call, tools)) === true) last.push(call);
    else groups.push([call]);
  }
  return groups;
}

function together(one: OpenCall, other: OpenCall, tools: Tools): boolean {
  if (one.execution !== other.execution) return false;
  if (one.execution !== 'path') return one.execution === 'parallel';
  if (!writes(one, tools) && !writes(other, tools)) return true;
  const [mine, theirs] = [pathsOf(one, tools), pathsOf(other, tools)];
  return mine !== null && theirs !== null && !mine.some((path) => theirs.some((each) => overlap(path, each)));
}

function toolOf(call: OpenCall, tools: Tools): Tools[number] | undefined {
  return tools.find(({ name }) => name === call.tool_name);
}

function writes(call: OpenCall, tools: Tools): boolean {
  return toolOf(call, tools)?.effect !== 'read';
}

interface Path { readonly absolute: boolean; readonly parts: readonly string[] }

/** What the call names; null where a path is not known. */
function pathsOf(call: OpenCall, tools: Tools): readonly Path[] | null {
  const named = toolOf(call, tools)?.path_args ?? [];
  const paths = named.flatMap((argument) => {
    const value = own(call.tool_input, argument);
    const list: readonly unknown[] = Array.isArray(value) ? value : [value];
    return list.map((each) => (typeof each === 'string' ? partsOf(each) : null));
  });
  return paths.length === 0 || paths.includes(null) ? null : paths as readonly Path[];
}

/**
 * By its words alone, as a file system would read them that tells neither case nor ways to write a letter apart. Null for one that says
 * nothing, or more than a place: a pattern, a variable, an address, a way up (behind a link that leads elsewhere), an end in its middle.
 */
function partsOf(text: string): Path | null {
  const path = text.trim().replaceAll('\\', '/');
  if (path === '' || /[*?~$%[\]{}\p{Cc}]/u.test(path) || /^(?![A-Za-z]:\/)[A-Za-z][A-Za-z0-9+.-]*:/.test(path)) return null;
  const parts = path.split('/').filter((part) => part !== '' && part !== '.');
  return parts.includes('..') ? null : { absolute: /^(\/|[A-Za-z]:)/.test(path), parts: parts.map(folded) };
}

/** Upper case is the coarser fold. Some file systems leave out dots and blanks at the end of a name. */
function folded(part: string): string {
  return (part.replace(/[. ]+$/, '') || part).normalize().toUpperCase().normalize();
}

/** The same, or one lies in the other. From where a relative path counts is the tool's to know: it may be any absolute one. */
function overlap(one: Path, other: Path): boolean {
  return one.absolute !== other.absolute || one.parts.slice(0, other.parts.length).every((part, index) => part === other.parts[index]);
}
