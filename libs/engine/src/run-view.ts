/**
 * The run as the API shows it and the archive keeps it (contract, section 5).
 */
import { specOf, type RunState } from '@treadle/core';

export type RunView = Readonly<Record<string, unknown>> & { readonly id: string; readonly status: RunState['status']; readonly last_seq: number };

export function runView(state: RunState, archived_seq: number): RunView {
  return {
    id: state.run_id, session_id: state.session_id, parent_run_id: state.parent_run_id, forked_from: state.forked_from,
    agent: state.agent, agent_version: state.agent_version, chain: specOf(state).chain.name,
    status: state.status, stop_reason: state.stop_reason, pause_reason: state.pause_reason, resumes_at: state.resumes_at,
    answer: state.answer, output: state.output, checks: state.checks, turn_number: state.turn_number, tool_calls: state.tool_calls,
    usage: state.usage, model: state.model, recoveries: state.recoveries, pending: state.pending,
    partial: state.partial, error: state.error, limits: state.limits, metadata: state.metadata, tags: state.tags,
    priority: state.priority, run_at: state.run_at, last_seq: state.last_seq, archived_seq,
    created_at: iso(state.created_at), started_at: iso(state.started_at), ended_at: iso(state.ended_at),
  };
}

/** The same as the archive keeps it: with its owner, with the runs that it has started, and with where its end is told. */
export function archivedDocument(state: RunState, archived_seq: number, tenant: string): string {
  return JSON.stringify({ ...runView(state, archived_seq), tenant, children: state.children.map(({ child_run_id, tool_use_id, agent }) => ({ child_run_id, tool_use_id, agent })), ...(state.webhook === undefined ? {} : { webhook: state.webhook }) });
}

function iso(seconds: number | null): string | null {
  return seconds === null ? null : new Date(seconds * 1000).toISOString();
}
