/**
 * The port of hooks and validators: what is said of a text answer before it may end a run.
 *
 * J1  Never throws for what a hook or a validator does: one that throws, answers a promise or is late is `skipped`, or counts as
 *     failed with what went wrong (a validator that could not speak has not agreed).
 * J2  Each has 50 ms; a regular expression that backtracks for ever is stopped there too.
 * J3  They get frozen views, and are asked in the agent's order.
 */
import type { AgentSpec, Judgement } from '@treadle/core';

/** What a hook or validator sees. Frozen. */
export interface AnswerView {
  readonly run_id: string;
  /** The whole answer, continuations joined. */
  readonly text: string;
  readonly turn_number: number;
  readonly tool_calls: number;
  /** What the user asked last. */
  readonly input: string;
}

export interface AnswerJudge {
  judge(spec: AgentSpec, view: AnswerView): Judgement;
}
