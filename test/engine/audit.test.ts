/** The audit finds what it is there to find: a document, an event or a whole piece of the log that is not as it was. */
import { defaultLimits, encodeEvent, evolve, initialState, stamp, type EventBody, type RunState } from '@treadle/core';
import { auditRun, runView } from '@treadle/engine';
import { createMemoryArchive, testSpec } from '@treadle/testkit';
import { expect, test } from 'vitest';

const run_id = `run_${'0'.repeat(32)}`;
const bodies: EventBody[] = [
  {
    type: 'run_created', agent: 'a', agent_version: 'v', agent_spec: testSpec(), session_id: 'ses_x', parent_run_id: null, forked_from: null, tenant: 'acme',
    limits: defaultLimits, chain: 'c', tools: [], metadata: {}, tags: [], priority: 50, run_at: null,
  },
  { type: 'user_message', content: 'go' }, { type: 'state_change', old: 'queued', new: 'running', reason: 'claimed' },
  { type: 'state_change', old: 'running', new: 'cancelled', reason: 'interrupted' }, { type: 'run_end', status: 'cancelled', stop_reason: 'interrupted' },
];

async function archivedRun(change: { document?: object; events?: (lines: string[]) => string[] } = {}) {
  const archive = createMemoryArchive();
  let state: RunState = { ...initialState, run_id };
  const lines = bodies.map((body) => {
    const event = stamp(state, body, 1_700_000_000, 1);
    state = evolve(state, event);
    return encodeEvent(event);
  });
  const events = (change.events ?? ((all) => all))(lines);
  await archive.putSegment({ run_id, first_seq: 1, last_seq: events.length, events });
  await archive.putRun({ run_id, tenant: 'acme', document: JSON.stringify({ ...runView(state, state.last_seq), tenant: 'acme', ...change.document }) });
  return archive;
}

test('an archived log that gives its state is identical', async () => {
  expect(await auditRun(await archivedRun(), run_id)).toEqual({ result: 'identical' });
});

test.each([
  ['another document', { document: { status: 'completed' } }, { result: 'different', fields: ['status'] }],
  ['another event', { events: (lines: string[]) => lines.map((line) => line.replace('"tags":[]', '"tags":["x"]')) }, { result: 'different', fields: ['tags'] }],
  ['a log that is cut', { events: (lines: string[]) => lines.slice(0, 4) }, { result: 'failed', problem: 'event 5 is missing' }],
  ['a log that does not fold', { events: (lines: string[]) => lines.map((line) => line.replace('"old":"queued"', '"old":"paused"')) }, { result: 'failed', problem: 'INVARIANT_BROKEN: move paused → running while queued' }],
])('%s is found', async (_name, change, result) => {
  expect(await auditRun(await archivedRun(change), run_id)).toEqual(result);
});

test('a run without a document is not audited', async () => {
  expect(await auditRun(createMemoryArchive(), run_id)).toBeNull();
});
