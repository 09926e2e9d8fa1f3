/** Tools that change while a run is under way. */
import { expect, test } from 'vitest';
import { lookAhead } from './codec.ts';
import { decide } from './decide.ts';
import type { EventBody } from './events.ts';
import { fixture, tool } from './fixture.ts';
import type { RunState } from './state.ts';
import { toolUses } from './tool-call.ts';
import { noJudgement, type TurnClaimed } from './turn-input.ts';
import { noUsage } from './usage.ts';

const answered: EventBody[] = [{ type: 'turn_end', duration: 1, usage: noUsage }];
const between = (): RunState => fixture({ events: answered });
const claimed = (tool_changes: NonNullable<TurnClaimed['tool_changes']> | null): TurnClaimed => ({
  type: 'turn_claimed', unavailable: [], room_ms: 0, now_s: 1000, worker: 'w', deliveries: 1, poison_limit: 3, nudges: 0, nudge_limit: 5, wait_ms: 0, judgement: noJudgement, history: null, begun: [], tools: null, tool_problems: [], tool_changes, commands: [],
});
const news = { problems: ['Tool s/x is left out: its input schema is not of type "object".'], tools: [tool('look'), tool('fresh')], gone: ['write', 'poll'], kept: [{ name: 'look', hash: 'sha256:2' }] };

test('a change is an event before the turn, and the model is asked with what is there now', () => {
  const decision = decide(between(), claimed(news));
  expect(decision.events.map(({ type }) => type)).toEqual(['tools_changed', 'turn_start', 'model_request']);
  expect(decision.events[0]).toEqual({ type: 'tools_changed', done: 'changed', ...news });
  const after = lookAhead(between(), decision.events);
  expect(after.tools?.map(({ name }) => name)).toEqual(['look', 'fresh']);
  expect(after.tool_news).toEqual({ changes: 1, gone: ['write', 'poll'], kept: { look: 'sha256:2' }, problems: news.problems, times: { write: 1, poll: 1, look: 1 } });
});

test('a call of what is gone is told so, and one of what never was is told that', () => {
  const after = lookAhead(between(), decide(between(), claimed(news)).events);
  const invalid = (name: string) => toolUses(after, [{ provider_id: null, name, input: {}, problem: null }])[0]!.invalid;
  expect(invalid('write')).toBe('The tool "write" is no longer available. Available: look, fresh.');
  expect(invalid('wrte')).toBe('There is no tool named "wrte". Available: look, fresh.');
  expect(invalid('fresh')).toBeUndefined();
});

test('what is gone is not remembered as described otherwise: it may come back as anything, and is pinned as that', () => {
  const kept = lookAhead(between(), decide(between(), claimed(news)).events);
  const gone = lookAhead(kept, [...answered, { type: 'tools_changed', tools: [tool('fresh')], gone: ['look'], kept: [], problems: [], done: 'changed' }]);
  expect(gone.tool_news).toEqual({ changes: 2, gone: ['write', 'poll', 'look'], kept: {}, problems: news.problems, times: { write: 1, poll: 1, look: 2 } });
});

test('what comes back is there again', () => {
  const gone = lookAhead(between(), decide(between(), claimed(news)).events);
  const back = lookAhead(gone, [...answered, { type: 'tools_changed', tools: [...news.tools, tool('write')], problems: [], done: 'changed' }]);
  expect(back.tool_news).toMatchObject({ changes: 2, gone: ['poll'] });
});

test('nothing is said where nothing changed, nor of a server that changes without end', () => {
  expect(decide(between(), claimed(null)).events.map(({ type }) => type)).toEqual(['turn_start', 'model_request']);
  const restless = { ...between(), tool_news: { changes: 50, gone: [], kept: {} } };
  expect(decide(restless, claimed(news)).events.map(({ type }) => type)).toEqual(['turn_start', 'model_request']);
});

test('what was left out is remembered from the pinning on, the newest of it, and so is how often a server has said other things', () => {
  const pinned = fixture({ events: [{ type: 'tools_changed', tools: [tool('look')], problems: ['MCP server s is away'], remembered: true, done: 'pinned' }] });
  expect(pinned.tool_news).toEqual({ changes: 0, gone: [], kept: {}, problems: ['MCP server s is away'] });
  expect(fixture({}).tool_news).toBeUndefined();
  // As logs have it that were written before there was a memory of problems.
  expect(fixture({ events: [{ type: 'tools_changed', tools: [tool('look')], problems: ['MCP server s is away'], done: 'pinned' }] }).tool_news).toBeUndefined();
  const many = Array.from({ length: 120 }, (_, index) => `problem ${index}`);
  const later = lookAhead(pinned, [...answered, { type: 'tools_changed', tools: [tool('look')], problems: many, instructions: { s: 'sha256:1' }, done: 'changed' }]);
  expect(later.tool_news).toMatchObject({ changes: 1, times: { 's/': 1 } });
  expect(later.tool_news?.problems).toEqual(many.slice(20));
});

test('a call of what is gone is known by the name that the model knows', () => {
  const gone = lookAhead(between(), [...answered, { type: 'tools_changed', tools: [tool('look')], gone: ['s/a.b', '1/x'], problems: [], done: 'changed' }]);
  for (const name of ['s__a_b', '_1__x']) expect(toolUses(gone, [{ provider_id: null, name, input: {}, problem: null }])[0]!.invalid).toBe(`The tool "${name}" is no longer available. Available: look.`);
});
