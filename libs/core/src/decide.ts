/**
 * What must happen next: `decide(state, input)`. Facts in, decision out, compared as plain data.
 *
 * C1  Synchronous, total, free of time, randomness and I/O.
 * C2  Every event it emits is accepted by `evolve` in the state it was decided for.
 * C3  A reply's calls are committed (with this decision's events) before any of them is begun (its effect).
 * C4  Each call is settled exactly once.
 * Every decision uses up all commands it was given: what cannot act now is a fact in the log that acts later.
 */
import { assertNever } from './assert-never.ts';
import { decideClaimed } from './decide-claimed.ts';
import { decideFailed } from './decide-failed.ts';
import { decideReplied } from './decide-replied.ts';
import { decideSettled } from './decide-settled.ts';
import { decideSummarised } from './decide-summarised.ts';
import type { RunState } from './state.ts';
import type { Decision, TurnInput } from './turn-input.ts';

export function decide(state: RunState, input: TurnInput): Decision {
  switch (input.type) {
    case 'turn_claimed': return decideClaimed(state, input);
    case 'model_replied': return decideReplied(state, input);
    case 'model_failed': return decideFailed(state, input);
    case 'tool_calls_settled': return decideSettled(state, input);
    case 'summarised': return decideSummarised(state, input);
    default: return assertNever(input);
  }
}
