/**
 * How a store names what a person's word is waited for, and what a word that comes is about, so that it can tell the first from the
 * rest without reading the run.
 */
import type { ApprovalCommand, Command, OutcomeCommand } from './command.ts';
import type { PendingCall } from './events.ts';

export type WordCommand = OutcomeCommand | ApprovalCommand;

export interface WordKey {
  /** One for each question: a call may be asked about before it begins, and again when nobody knows how it went. */
  readonly subject: string;
  /** As it stands among `awaitedWords`, as long as it is waited for. */
  readonly awaited: string;
}

/** Ids and digests have no blanks. */
function approvalOf(tool_use_id: string, digest: string): string {
  return `${tool_use_id} ${digest}`;
}

export function awaitedWords(pending: readonly PendingCall[]): string[] {
  return pending.flatMap(({ kind, tool_use_id, digest }) => kind === 'outcome' ? [tool_use_id] : kind === 'approval' ? [approvalOf(tool_use_id, digest ?? '')] : []);
}

export function isWord(command: Command): command is WordCommand {
  return command.type === 'outcome' || command.type === 'approval';
}

export function wordKeyOf(command: WordCommand): WordKey {
  // A caller may say anything for an id. What is not one must not come to be the name of something else that is waited for.
  const tool_use_id = encodeURIComponent(command.tool_use_id.toWellFormed());
  return command.type === 'outcome' ? { subject: tool_use_id, awaited: tool_use_id } : { subject: `${tool_use_id} approval`, awaited: approvalOf(tool_use_id, command.digest) };
}
