/**
 * A person's word on a call that waits for approval.
 *
 * 1. It is about the call as the run shows it now, or as the caller has seen it (`digest`); a call that waits with other arguments
 *    does not take it. The store decides, in one step, which of several words is the first.
 * 2. Other arguments have to fit the tool as the run is pinned to it, or nothing is written.
 */
import { isEnded, oversizedInput, type ApprovalCommand, type PendingCall, type RunState, type ToolDefinition } from '@treadle/core';
import { callDigest, type RunView } from '@treadle/engine';
import { createArgumentCheck } from '@treadle/tools/arguments';
import type { ApiContext } from '../dependencies.ts';
import { invalidRequest, notFound, Problem } from '../problem.ts';
import type { ApprovalBody } from './command-schema.ts';
import { commandRun, refused } from './commands.ts';
import { findRun } from './find.ts';

export interface Decided {
  readonly tenant: string;
  readonly run_id: string;
  readonly tool_use_id: string;
  readonly body: ApprovalBody;
  readonly by: string;
  readonly idempotencyKey: string | undefined;
}

const check = createArgumentCheck();

export async function decideCall(context: ApiContext, decided: Decided): Promise<RunView> {
  const { tenant, run_id, tool_use_id, body, by, idempotencyKey } = decided;
  const found = await findRun({ store: context.store(), archive: context.log.archive }, tenant, run_id);
  if (found.from === 'archive') throw refused(found.view.status);
  const { state } = found;
  const waiting = state.pending.find((call) => call.kind === 'approval' && call.tool_use_id === tool_use_id);
  if (waiting === undefined && !isEnded(state.status) && !await wasMade(context, decided, state)) throw notFound();
  const digest = body.digest ?? waiting?.digest ?? 'none';
  if (waiting !== undefined && digest !== waiting.digest) throw otherCall();
  const changed = waiting === undefined || body.input === undefined ? {} : { changed: changedTo(state, waiting, body.input) };
  const command: ApprovalCommand = { type: 'approval', tool_use_id, digest, decision: body.decision, by, reason: body.reason ?? null, ...changed };
  return commandRun(context, { tenant, run_id, command, idempotencyKey, contents: { tool_use_id, ...body } });
}

/** Whether the run has made such a call at all, now or earlier. */
async function wasMade(context: ApiContext, { tenant, run_id, tool_use_id }: Decided, { calls }: RunState): Promise<boolean> {
  if (calls.some((call) => call.tool_use_id === tool_use_id)) return true;
  const found = await findRun({ store: context.store(), archive: context.log.archive }, tenant, run_id, 'whole');
  if (found.from === 'archive') return true;
  const { transcript, retired_ids } = found.state;
  return retired_ids.includes(tool_use_id) || transcript.messages.some((message) => message.role === 'assistant' && message.calls.some((call) => call.tool_use_id === tool_use_id));
}

function changedTo(state: RunState, { tool_name }: PendingCall, input: Readonly<Record<string, unknown>>): NonNullable<ApprovalCommand['changed']> {
  const tool: ToolDefinition | undefined = state.tools?.find((each) => each.name === tool_name);
  if (tool === undefined) throw new Error(`${tool_name} waits for approval and is no tool of the run`);
  const problem = oversizedInput(input) ?? check(tool, input);
  if (problem !== null) throw invalidRequest([{ path: 'input', problem }]);
  return { input, digest: callDigest(tool, input) };
}

function otherCall(): Problem {
  return new Problem({ status: 409, code: 'invalid_state', detail: 'The call waits with other arguments than those with this digest.' });
}
