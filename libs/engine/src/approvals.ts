/**
 * Which calls need a person's word, and what exactly that word is about.
 *
 * A1  A call is begun only if it is the one that was approved: its tool's name, its arguments and the tool's definition, by their hash.
 * A2  A tool whose every call has to be approved is never begun by one that nobody was asked about, whatever the log lacks.
 */
import { createHash } from 'node:crypto';
import { canonicalJson, toolUses, type OpenCall, type ReplyCall, type RunState, type ToolDefinition } from '@treadle/core';
import type { ToolRunner } from './ports/tool-runner.ts';

export function callDigest(tool: Pick<ToolDefinition, 'name' | 'hash'>, input: Readonly<Record<string, unknown>>): string {
  return `sha256:${createHash('sha256').update(canonicalJson([tool.name, input, tool.hash])).digest('hex')}`;
}

/** By the ids that the calls of a reply will have: the digests of those that need a word. */
export function digestsToApprove(tools: Pick<ToolRunner, 'asks'>, state: RunState, calls: readonly ReplyCall[]): Readonly<Record<string, string>> {
  return Object.fromEntries(toolUses(state, calls).flatMap(({ tool_use_id, tool_name, tool_input, invalid }) => {
    const tool = invalid === undefined ? state.tools?.find((each) => each.name === tool_name) : undefined;
    return tool?.approval !== undefined && tools.asks(tool, tool_input) ? [[tool_use_id, callDigest(tool, tool_input)]] : [];
  }));
}

/** Why a call must not be begun; null where it may. */
export function notApproved(tool: ToolDefinition, { approval, tool_input }: OpenCall): string | null {
  if (approval === undefined) return tool.approval === undefined || tool.approval.when !== undefined ? null : 'Nobody was asked about this call; it was not carried out.';
  if (approval.state === 'approved' && approval.digest === callDigest(tool, tool_input)) return null;
  return 'This is not the call that was approved; it was not carried out.';
}
