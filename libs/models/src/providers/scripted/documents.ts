/**
 * Walks a documents folder through the tools of the MCP filesystem server: which folders and files tool results have named, what
 * has been read of them, and which calls would tell more.
 *
 * 1  Only what a tool result says is known; a path is never invented.
 * 2  No call is made twice, failed ones included, and their number is bounded; so the walk ends.
 */
import type { ReplyCall, ToolDefinition } from '@treadle/core';
import type { Answered } from './conversation.ts';
import { keywords, overlap } from './keywords.ts';
import { bestPassage, type ReadFile } from './passages.ts';

/** Read at the same time; and in all, where the first ones hold little of what was asked. */
const readsAtOnce = 3;
const mostReads = 12;
const mostListings = 12;

const textFile = /\.(md|markdown|mdx|txt)$/i;

export interface DocumentTools {
  readonly roots: ToolDefinition | null;
  readonly list: ToolDefinition | null;
  readonly tree: ToolDefinition | null;
  readonly search: ToolDefinition | null;
  readonly read: ToolDefinition;
}

/** Null when the tools cannot list or search a folder and read a file. */
export function documentTools(tools: readonly ToolDefinition[]): DocumentTools | null {
  const named = (name: string): ToolDefinition | null => tools.find((tool) => baseName(tool.name) === name) ?? null;
  const read = named('read_text_file') ?? named('read_file');
  const found = { roots: named('list_allowed_directories'), list: named('list_directory'), tree: named('directory_tree'), search: named('search_files') };
  if (read === null || (found.list === null && found.tree === null && found.search === null)) return null;
  return { ...found, read };
}

/** What to call next; none when enough is known to answer. */
export function nextCalls(question: string, tools: DocumentTools, answered: readonly Answered[]): readonly ReplyCall[] {
  const done = (tool: ToolDefinition, path?: string): boolean =>
    answered.some((each) => baseName(each.tool_name) === baseName(tool.name) && (path === undefined || each.tool_input['path'] === path));
  if (tools.roots !== null && !done(tools.roots)) return [call(tools.roots, {})];

  const lister = tools.list ?? tools.tree ?? tools.search;
  const listings = answered.filter((each) => lister !== null && baseName(each.tool_name) === baseName(lister.name)).length;
  if (lister !== null) {
    const open = folders(tools, answered).filter((path) => !done(lister, path)).slice(0, Math.max(0, mostListings - listings));
    if (open.length > 0) return open.slice(0, readsAtOnce).map((path) => call(lister, lister === tools.search ? { path, pattern: '**/*.md' } : { path }));
  }
  const reads = answered.filter((each) => baseName(each.tool_name) === baseName(tools.read.name)).length;
  if (reads > 0 && (reads >= mostReads || isEnough(question, readFiles(tools, answered)))) return [];
  const unread = ranked(question, files(answered)).filter((path) => !done(tools.read, path));
  return unread.slice(0, readsAtOnce).map((path) => call(tools.read, { path }));
}

/** Files whose content a tool has really returned. */
export function readFiles(tools: DocumentTools, answered: readonly Answered[]): readonly ReadFile[] {
  return answered.flatMap((each) => {
    const path = each.tool_input['path'];
    if (each.is_error || baseName(each.tool_name) !== baseName(tools.read.name) || typeof path !== 'string') return [];
    return [{ path, content: each.content }];
  });
}

/** Half of what was asked for stands in one passage. */
function isEnough(question: string, read: readonly ReadFile[]): boolean {
  return (bestPassage(question, read)?.matched ?? 0) * 2 >= Math.max(1, keywords(question).length);
}

/** The folders to look into: the allowed ones, or the present one where nobody says, and those that listings name. */
function folders(tools: DocumentTools, answered: readonly Answered[]): readonly string[] {
  const roots = tools.roots === null ? ['.'] : results(answered, 'list_allowed_directories').flatMap((each) => lines(each.content).filter(isPath));
  const below = tools.list === null ? [] : results(answered, 'list_directory').flatMap((each) => entries(each, 'DIR'));
  return [...new Set([...roots, ...below])];
}

function files(answered: readonly Answered[]): readonly string[] {
  const listed = results(answered, 'list_directory').flatMap((each) => entries(each, 'FILE'));
  const found = results(answered, 'search_files').flatMap((each) => lines(each.content));
  const inTrees = results(answered, 'directory_tree').flatMap((each) => treeFiles(each));
  return [...new Set([...listed, ...found, ...inTrees])].filter((path) => textFile.test(path));
}

/** Names that hold most of the question's words first; then by name, so that the order never depends on the disk. */
function ranked(question: string, paths: readonly string[]): readonly string[] {
  const wanted = keywords(question);
  const scored = paths.map((path) => ({ path, score: overlap(wanted, path.split(/[\\/]/).slice(-2).join(' ')) }));
  return scored.sort((a, b) => b.score - a.score || (a.path < b.path ? -1 : 1)).map((each) => each.path);
}

function results(answered: readonly Answered[], name: string): readonly Answered[] {
  return answered.filter((each) => !each.is_error && baseName(each.tool_name) === name);
}

/** `[FILE] name` and `[DIR] name`; hidden folders and packages are not documents. */
function entries(listing: Answered, kind: 'FILE' | 'DIR'): string[] {
  return lines(listing.content).flatMap((line) => {
    const name = new RegExp(`^\\[${kind}\\] (.+)$`).exec(line)?.[1];
    if (name === undefined || name.startsWith('.') || name === 'node_modules') return [];
    return [join(String(listing.tool_input['path'] ?? '.'), name)];
  });
}

function treeFiles(listing: Answered): string[] {
  try {
    return walk(JSON.parse(listing.content) as unknown, String(listing.tool_input['path'] ?? '.'), 16);
  } catch {
    return [];
  }
}

function walk(nodes: unknown, at: string, depth: number): string[] {
  if (!Array.isArray(nodes) || depth === 0) return [];
  return nodes.flatMap((node: unknown) => {
    const { name, type, children } = (node ?? {}) as { name?: unknown; type?: unknown; children?: unknown };
    if (typeof name !== 'string') return [];
    return type === 'directory' ? walk(children, join(at, name), depth - 1) : [join(at, name)];
  });
}

function call(tool: ToolDefinition, input: Readonly<Record<string, unknown>>): ReplyCall {
  return { provider_id: null, name: tool.wire_name, input, problem: null };
}

/** `files/list_directory` → `list_directory`. */
function baseName(name: string): string {
  return name.split('/').at(-1) ?? name;
}

function lines(text: string): string[] {
  return text.split('\n').map((line) => line.trim()).filter((line) => line !== '');
}

function isPath(line: string): boolean {
  return !line.endsWith(':') && /^([/\\.~]|[A-Za-z]:[\\/])/.test(line);
}

function join(folder: string, name: string): string {
  const separator = folder.includes('\\') && !folder.includes('/') ? '\\' : '/';
  return folder === '.' ? name : `${folder.replace(/[\\/]+$/, '')}${separator}${name}`;
}
