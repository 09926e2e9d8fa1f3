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
import { childEnds } from './children.ts';
import { lookAhead } from './codec.ts';
import type { ChildEnded } from './command.ts';
import { decideClaimed } from './decide-claimed.ts';
import { decideFailed } from './decide-failed.ts';
import { decideReplied } from './decide-replied.ts';
import { decideSettled } from './decide-settled.ts';
import { decideSummarised } from './decide-summarised.ts';
import type { RunState } from './state.ts';
import type { Decision, TurnInput } from './turn-input.ts';

export function decide(state: RunState, input: TurnInput): Decision {
  // The ends of other runs are facts already: whatever is decided, is decided knowing them.
  const told = childEnds(state, endsIn(input));
  const decision = decideOn(lookAhead(state, told), input);
  return told.length === 0 ? decision : { ...decision, events: [...told, ...decision.events] };
}

function endsIn(input: TurnInput): ChildEnded[] {
  const found = input.type === 'tool_calls_settled' ? input.child_ends ?? [] : [];
  return [...input.commands.filter((command) => command.type === 'child_ended'), ...found];
}

function decideOn(state: RunState, input: TurnInput): Decision {
  switch (input.type) {
    case 'turn_claimed': return decideClaimed(state, input);
    case 'model_replied': return decideReplied(state, input);
    case 'model_failed': return decideFailed(state, input);
    case 'tool_calls_settled': return decideSettled(state, input);
    case 'summarised': return decideSummarised(state, input);
    default: return assertNever(input);
  }
}
