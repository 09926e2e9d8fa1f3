/** What holds after every case, whatever it was about. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Run } from '@treadle/client';
import type { RunEvent } from '@treadle/core';
import type { RecordedRequest } from '@treadle/testkit';
import { expect } from 'vitest';
import type { Cases, LiveRun, Script } from './stage.ts';

export interface Played {
  readonly run: Run;
  readonly events: readonly RunEvent[];
  readonly requests: readonly RecordedRequest[];
  readonly live: LiveRun;
}

/** Begins a run, waits for its end and makes the general checks. */
export async function play(cases: Cases, label: string, script: Script, request: Parameters<Cases['begin']>[2] & { readonly withinMs?: number } = {}): Promise<Played> {
  const { withinMs, ...asked } = request;
  return finish(cases, await cases.begin(label, script, asked), withinMs);
}

/** The same of a run that has begun. */
export async function finish(cases: Cases, live: LiveRun, withinMs?: number): Promise<Played> {
  const run = await live.ended(withinMs);
  const events = await generalChecks(cases, live, run);
  return { run, events, requests: live.requests(), live };
}

/**
 * (1) A terminal state. (2) Numbers without gap or double, one end and it is last; whatever the event stream showed is in the
 * stored log. (3) The log folds to the stored state. (4) No process has ended by itself. And of the model's side: nothing was
 * refused by the strict validator, the script was used up, every call has one result. Answers the stored log.
 */
export async function generalChecks(cases: Cases, live: LiveRun, run: Run): Promise<RunEvent[]> {
  const where = live.label;
  expect(['completed', 'expired', 'failed', 'cancelled'], where).toContain(run.status);
  const events = await storedLog(cases, live.id);
  keepLog(live.label, events);
  expect(events.map((event) => event.seq), where).toEqual(events.map((_, index) => index + 1));
  expect(events.flatMap((event) => event.type === 'run_end' ? [event.seq] : []), where).toEqual([events.length]);
  expect(live.seen, where).toEqual(events);
  expect(run.last_seq, where).toBe(events.length);
  expect(await cases.stage.client.replay(live.id), where).toMatchObject({ identical: true, differences: [], events: events.length });
  expect(cases.casualties(), where).toEqual([]);
  const refused = live.requests().filter((request) => request.refused.length > 0);
  if (refused.length > live.refusals) expect(refused.flatMap((request) => request.refused), where).toEqual([]);
  if (live.wire !== null) expect([...new Set(live.requests().map((request) => request.dialect))], where).toEqual([live.wire]);
  expect(live.unused(), `${where}: unused replies`).toBe(0);
  expect(ofType(events, 'tool_result').map((event) => event.tool_use_id).sort(), where).toEqual(ofType(events, 'tool_use').map((event) => event.tool_use_id).sort());
  return events;
}

/** Where `LOGS_OUT` names a folder, every log is kept there: what golden logs are chosen from. */
function keepLog(label: string, events: readonly RunEvent[]): void {
  const folder = process.env['LOGS_OUT'];
  if (folder !== undefined) writeFileSync(join(folder, `${label.replaceAll(/[^\w-]+/g, '-').slice(0, 60)}.jsonl`), events.map((event) => `${JSON.stringify(event)}\n`).join(''));
}

/** The log as JSON lines. */
export async function storedLog(cases: Cases, id: string): Promise<RunEvent[]> {
  const response = await fetch(`${cases.stage.api.url}/v1/runs/${id}/events`, { headers: { accept: 'application/x-ndjson' } });
  expect(response.status).toBe(200);
  return (await response.text()).split('\n').filter((line) => line !== '').map((line) => JSON.parse(line) as RunEvent);
}

export function ofType<Type extends RunEvent['type']>(events: readonly RunEvent[], type: Type): Extract<RunEvent, { type: Type }>[] {
  return events.filter((event): event is Extract<RunEvent, { type: Type }> => event.type === type);
}
