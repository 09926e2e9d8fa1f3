/**
 * The port of tracing: it is told what work begins, as part of what, and how it ended. The engine speaks of runs, turns, models and tools;
 * what a span is called, which of it is kept and where it goes is the adapter's business.
 *
 * X1  Never throws, never waits, and changes nothing about the work.
 * X2  A span is ended once; ending it again does nothing. One that is never ended, because its process died, was never there.
 * X3  What people, models and tools said is kept only where the adapter was told to capture content.
 */
import type { ModelRequest, OpenCall, RunState, SettledCall, ToolDefinition } from '@treadle/core';
import type { LeaveReason } from '../hold.ts';
import type { ModelOutcome } from './model-gateway.ts';
import type { Claimed, CreateReply, SealedRange } from './run-store.ts';

/** What a span stands for. */
export type Traced =
  | { readonly type: 'run_creation'; readonly run_id: string; readonly session_id: string; readonly tenant: string; readonly agent: string; readonly agent_version: string }
  /** One delivery of a turn: a turn that another worker took over has several. `state`: as it was claimed. */
  | { readonly type: 'turn'; readonly state: RunState; readonly claimed: Pick<Claimed, 'epoch' | 'deliveries'>; readonly job_n: number; readonly worker: string }
  | { readonly type: 'model_call'; readonly state: RunState; readonly request: ModelRequest; readonly purpose: 'reply' | 'summary' }
  | { readonly type: 'tool_call'; readonly state: RunState; readonly tool: ToolDefinition; readonly call: OpenCall }
  | { readonly type: 'archive_write'; readonly range: SealedRange };

/** How it came out. */
export type SpanEnd =
  | { readonly type: 'run_creation'; readonly reply: CreateReply['type'] }
  | { readonly type: 'turn'; readonly how: LeaveReason | 'threw'; readonly state: RunState }
  | { readonly type: 'model_call'; readonly outcome: ModelOutcome }
  | { readonly type: 'tool_call'; readonly result: Pick<SettledCall, 'content' | 'is_error' | 'outcome'> }
  | { readonly type: 'archive_write' }
  | { readonly type: 'threw'; readonly error: unknown };

/** Over what a tool call was sent. */
export interface Carrier { readonly protocol: 'mcp'; readonly transport: 'pipe' | 'tcp' }

export interface Span {
  /** What others go on from (see `readTraceparent`); null where nobody traces. */
  readonly traceparent: string | null;
  begin(part: Traced): Span;
  carriedBy(carrier: Carrier): void;
  end(how: SpanEnd): void;
}

export interface SpanContext {
  /** The span that it is a part of, wherever that is kept; null begins a trace. */
  readonly parent: string | null;
  /** A span that it comes from and is no part of. */
  readonly link?: string | null;
}

export interface Tracer {
  begin(what: Traced, context: SpanContext): Span;
}

/** For those who do not trace. */
export const noSpan: Span = { traceparent: null, begin: () => noSpan, carriedBy: () => undefined, end: () => undefined };
export const noTracer: Tracer = { begin: () => noSpan };

/** Does the work, and ends the span whatever comes of it. */
export async function traced<T>(span: Span, work: () => Promise<T>, came: (result: T) => SpanEnd): Promise<T> {
  let how: SpanEnd = { type: 'threw', error: null };
  try {
    const result = await work();
    how = came(result);
    return result;
  } catch (error) {
    how = { type: 'threw', error };
    throw error;
  } finally {
    span.end(how);
  }
}
