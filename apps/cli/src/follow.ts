/**
 * A run's events as lines for people, and the line that sums it up.
 */
import { LogReset, type Client, type Run } from '@treadle/client';
import type { RunEvent } from '@treadle/core';
import { exitCodes } from './setup.ts';

export interface FollowOptions {
  readonly client: Client;
  readonly id: string;
  readonly json: boolean;
  readonly write: (text: string) => void;
  readonly after?: number;
}

/** Prints events until the run has ended; answers the run. With `json`, one event per line. */
export async function follow({ client, id, json, write, after = 0 }: FollowOptions): Promise<Run> {
  const print = createPrinter(write);
  for (let from: number | null = after; from !== null;) {
    try {
      for await (const event of client.events(id, { after: from })) {
        if (json) write(`${JSON.stringify(event)}\n`);
        else print(event);
      }
      from = null;
    } catch (error) {
      if (!(error instanceof LogReset)) throw error;
      from = error.last_seq;
      write(json ? `${JSON.stringify({ type: 'reset', last_seq: from })}\n` : `the store has lost its last writes: what was shown after event ${from} is void\n`);
    }
  }
  return client.run(id);
}

/** Status, turns, tokens, time. */
export function summary(run: Run): string {
  const seconds = run.ended_at === null ? 0 : (Date.parse(run.ended_at) - Date.parse(run.created_at)) / 1000;
  const tokens = run.usage.input_tokens + run.usage.output_tokens;
  const reason = run.stop_reason === null ? '' : ` (${run.stop_reason})`;
  const failure = run.error === null ? '' : `\n${run.error.message} ${run.error.detail}`;
  return `${run.id} ${run.status}${reason}: ${run.turn_number} turns, ${run.tool_calls} tool calls, ${tokens} tokens, ${seconds.toFixed(1)} s${failure}`;
}

export function exitCodeOf(run: Run): number {
  return ['expired', 'failed', 'cancelled'].includes(run.status) ? exitCodes.runDidNotComplete : exitCodes.done;
}

/** Increments are shown as they come; the final text only as far as it was not. */
function createPrinter(write: (text: string) => void): (event: RunEvent) => void {
  let shown = '';
  return (event) => {
    if (event.type === 'turn_start') shown = '';
    if (event.type === 'assistant_text') {
      const rest = event.is_final && event.content.startsWith(shown) ? event.content.slice(shown.length) : event.is_final ? `\n${event.content}` : event.content;
      shown += rest;
      write(event.is_final ? `${rest}\n` : rest);
      return;
    }
    const line = lineOf(event);
    if (line !== null) write(`${line}\n`);
  };
}

function lineOf(event: RunEvent): string | null {
  switch (event.type) {
    case 'run_created': return `run      ${event.run_id} of ${event.agent}`;
    case 'turn_start': return `turn ${event.turn_number}${event.attempt > 1 ? `, attempt ${event.attempt}` : ''}`;
    case 'model_request': return `  model  ${event.model}${event.provider === 'scripted' ? ' (the built-in scripted stand-in, not a language model)' : ''}`;
    case 'tools_changed': return event.problems.length === 0 ? null : event.problems.map((problem) => `  tools  ${problem}`).join('\n');
    case 'tool_use': return `  call   ${event.tool_name} ${clip(JSON.stringify(event.tool_input), 120)}`;
    case 'tool_result': return `  ${event.is_error ? 'error ' : 'result'} ${clip(event.content.replace(/\s+/g, ' ').trim(), 120)}`;
    case 'error': return `  error  ${event.error_type} → ${event.action}${event.retry_in ? ` in ${event.retry_in} s` : ''}: ${clip(event.detail, 120)}`;
    case 'steer': return `  steer  ${event.content}`;
    case 'state_change': return event.new === 'paused' ? `  paused (${event.reason})` : null;
    case 'run_end': return `end      ${event.status}: ${event.stop_reason}`;
    case 'max_iterations': return `  limit  ${event.limit}: ${event.summary}`;
    case 'validation_error': return `  again  ${event.validator_name} (${event.error_type}): ${clip(event.feedback, 120)}`;
    case 'stop_hook': return event.decision === 'skipped' || event.prompt === '' ? null : `  hook   ${event.hook} → ${event.decision}: ${clip(event.prompt, 120)}`;
    case 'compaction': return `  room   ${event.level}: ${event.tokens_before} → ${event.tokens_after} tokens`;
    case 'session_history': return `  goes on from ${event.from_run_id} (${event.messages.length} messages)`;
    case 'history_repaired': return `  repair ${event.problem}`;
    case 'context_truncated': return `  warn   ${event.model} counted ${event.counted_tokens} tokens of about ${event.estimated_tokens}`;
    case 'image_removed': return `  image  removed: ${event.reason}`;
    case 'run_updated': return `  update by ${event.by}`;
    case 'approval_requested': return `  asks   ${event.tool_name} waits for approval${event.expires_at === null ? '' : ` until ${event.expires_at}`}: treadle runs approve ${event.run_id} ${event.tool_use_id} (or deny)`;
    case 'approval_resolved': return `  word   ${event.tool_use_id} ${event.decision === 'approve' ? 'approved' : 'denied'} by ${event.by}${event.reason === null ? '' : `: ${clip(event.reason, 120)}`}${event.input === undefined ? '' : `, with ${clip(JSON.stringify(event.input), 120)}`}`;
    case 'outcome_resolved': return `  word   ${event.tool_use_id} ${event.decision.replaceAll('_', ' ')}, says ${event.by}`;
    case 'child_run': return `  agent  ${event.agent} ${event.child_run_id} ${event.status}`;
    case 'user_message':
    case 'assistant_text':
    case 'assistant_thinking':
    case 'final_response':
    case 'turn_end': return null;
  }
}

function clip(text: string, length: number): string {
  return text.length <= length ? text : `${text.slice(0, length - 1)}…`;
}
