/**
 * A summary has come, or has not: the run goes on with it, or without. Its failure never fails a run.
 */
import { wishesOf } from './command.ts';
import { compactionEvent, summaryOf } from './compaction.ts';
import { lookAhead } from './codec.ts';
import { callModel } from './decide-call.ts';
import { atLimit, endRun } from './ending.ts';
import type { CompactionSite, EventBody } from './events.ts';
import { pause } from './pausing.ts';
import { specOf, type RunState } from './state.ts';
import type { Decision, Summarised } from './turn-input.ts';
import { asWaste } from './usage.ts';

export function decideSummarised(state: RunState, input: Summarised): Decision {
  const wishes = wishesOf(input.commands);
  if (wishes.cancel) {
    const wasted = input.usage === null ? {} : { usage: asWaste(input.usage) };
    return endRun(state, 'interrupted', { elapsed_s: input.elapsed_s, turn_open: state.turn_open, before: wishes.events, ...wasted });
  }
  if (input.purpose.type === 'limit') {
    // Resumed later, the limit is still reached, and the run ends then.
    if (wishes.pause) return pause(wishes.events, input.elapsed_s);
    return { events: [...wishes.events, ...atLimit(lookAhead(state, wishes.events), input.purpose.reason, input)], effect: { type: 'end_run' } };
  }
  const events: EventBody[] = [...wishes.events, ...summaryEvents(state, input.purpose.site, input)];
  if (wishes.pause) return pause(events, input.elapsed_s);
  const next = callModel(lookAhead(state, events), [], { unavailable: input.unavailable, prices: input.prices, from: 'snip', elapsed_s: input.elapsed_s });
  return { ...next, events: [...events, ...next.events] };
}

function summaryEvents(state: RunState, site: CompactionSite, input: Summarised): EventBody[] {
  const model = specOf(state).chain.models[state.position];
  const plan = model === undefined ? null : summaryOf(state, model);
  if (model === undefined || plan === null || input.text === null || input.text.trim() === '') return [];
  const summary = `Summary of the conversation so far:\n${input.text.toWellFormed()}`;
  const event = compactionEvent(state, model, { level: 'summary', site, edit: { removed: plan.removed, replaced: [], summary } });
  return event === null ? [] : [input.usage === null ? event : { ...event, usage: input.usage, model: input.model } as EventBody];
}
