/** Replies of scripts as the port's unions. A word that nobody knows means that script and adapter differ: it throws. */
import { shardOf, type Command, type LedgerEntry } from '@treadle/core';
import type { AppendReply, InboxEntry, StoredState, WatchReply } from '@treadle/engine';
import type { Reply } from './script-runner.ts';

export function asReply(raw: unknown): Reply {
  if (!Array.isArray(raw) || typeof raw[0] !== 'string') throw new TypeError(`a script answered ${JSON.stringify(raw)}`);
  return raw as unknown as Reply;
}

export function unknownReply(script: string, reply: Reply): Error {
  return new TypeError(`the script "${script}" answered "${reply[0]}", which nobody knows`);
}

export function inboxEntry(command_id: string, command: Command): string {
  return JSON.stringify({ command_id, command } satisfies InboxEntry);
}

export function inboxOf(entries: readonly unknown[]): InboxEntry[] {
  return entries.map((entry) => JSON.parse(entry as string) as InboxEntry);
}

export function ledgerOf(entries: readonly unknown[]): LedgerEntry[] {
  return entries.map((entry) => JSON.parse(entry as string) as LedgerEntry);
}

/** Null for the empty list, which says that what the caller holds is current. */
export function storedOf(raw: unknown): StoredState | null {
  const parts = raw as unknown[];
  if (parts.length === 0) return null;
  const flat = parts[0] as string[];
  const fields: Record<string, string> = {};
  for (let at = 0; at < flat.length; at += 2) fields[flat[at]!] = flat[at + 1]!;
  return {
    fields, last_seq: Number(parts[1]), last_ts: Number(parts[2]), epoch: Number(parts[3]), generation: Number(parts[4]),
    messages: parts[5] as string[],
  };
}

export function appendReplyOf(raw: unknown): AppendReply {
  const reply = asReply(raw);
  if (reply[0] === 'committed') return { type: 'committed', inbox: inboxOf(reply.slice(1)) };
  if (reply[0] === 'fenced') return { type: 'fenced' };
  throw unknownReply('append_many', reply);
}

export function watchReplyOf(raw: unknown): WatchReply {
  const reply = asReply(raw);
  if (reply[0] === 'held') return { type: 'held', inbox: inboxOf(reply.slice(1)) };
  if (reply[0] === 'fenced') return { type: 'fenced' };
  throw unknownReply('watch', reply);
}

/** Groups requests by shard, remembering where each stood. */
export function byShard<T extends { readonly claim: { readonly run_id: string } }>(
  requests: readonly T[],
): Map<number, { readonly request: T; readonly index: number }[]> {
  return Map.groupBy(requests.map((request, index) => ({ request, index })), ({ request }) => shardOf(request.claim.run_id));
}
