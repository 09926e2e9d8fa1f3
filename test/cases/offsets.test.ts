/**
 * R21: commands are linearizable per run. Each comes at offsets around every step of a turn (the model's reply, the start of a tool, its
 * end, the commit of what it gave, and the one that ends the run), many runs at a time against the real processes: whatever is accepted
 * takes effect exactly once, what cannot is answered 409, and a run has one end and nothing after it. `CHAOS_SCALE=large` tries 2,000.
 */
import { ApiError } from '@treadle/client';
import { text, tool, reply, type ChatBody, type ScriptedReply } from '@treadle/testkit';
import type { RunEvent } from '@treadle/core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { scaled } from '../chaos/random.ts';
import { finish, ofType, type Played } from './general-checks.ts';
import { startCases, type Cases, type LiveRun } from './stage.ts';
import { messagesOf, resultCount } from './wire.ts';

let cases: Cases;
beforeAll(async () => {
  cases = await startCases({ ops: true, env: { TREADLE_POISON_LIMIT: '20' }, agents: { operator: { tools: ['t/*', 'ops/*'] } }, tools: { 'ops/deploy': { approval: 'always' }, 't/note': { effect: 'once', parallel: 'serial' } } });
  await Promise.all([cases.worker(), cases.worker()]);
});
afterAll(async () => { await cases.stop(); });

const steps = ['model reply', 'tool start', 'tool end', 'commit'] as const;
type Step = (typeof steps)[number];
const commands = ['cancel', 'pause', 'steer', 'approve', 'two at once'] as const;
type Series = (typeof commands)[number];

/** Of each command at each step; with five series and four steps, 200 or 2,000 runs. */
const perStep = scaled({ small: 10, large: 100 });
/** Runs at a time: more would only wait for one another. */
const together = 20;
/** How long the model thinks and the tool works, ms; and how far around a step a command comes. */
const thinkMs = 100;
const workMs = 100;
const reachMs = 25;
/** A tool that would outlast the test: it ends because it is told. */
const endlessMs = 120_000;

interface Offset { readonly series: Series; readonly step: Step; readonly index: number }

const after = (ms: number): Promise<void> => new Promise((resolve) => { setTimeout(resolve, Math.max(0, ms)); });

/** When the model was first asked, by label. */
const asked = new Map<string, () => void>();

async function sees(live: LiveRun, what: (event: RunEvent) => boolean): Promise<void> {
  for (let turn = 0; turn < 10_000 && !live.seen.some((event) => what(event) || event.type === 'run_end'); turn++) await after(3);
}

/** Until the moment of the offset. */
async function moment(live: LiveRun, { series, step, index }: Offset, request: Promise<void>): Promise<void> {
  const delta = perStep === 1 ? 0 : -reachMs + index * 2 * reachMs / (perStep - 1);
  if (step === 'model reply') return request.then(() => after(thinkMs + delta));
  // Every other one round the commit that ends the run.
  if (step === 'commit' && series !== 'approve' && index % 2 === 1) return sees(live, (event) => event.type === 'turn_end').then(() => after(thinkMs + 2 * delta + reachMs));
  if (step === 'commit') return sees(live, (event) => event.type === (series === 'approve' ? 'approval_requested' : 'tool_result')).then(() => after(delta + reachMs));
  // What is approved begins when it is: somebody else does so at once.
  await sees(live, (event) => event.type === (series === 'approve' ? 'approval_resolved' : 'tool_use'));
  return after(step === 'tool start' ? delta + reachMs : workMs + delta);
}

interface Sent { readonly type: 'cancel' | 'pause' | 'steer' | 'approve' | 'deny'; readonly answer: string }

const pairs = [['cancel', 'steer'], ['cancel', 'pause'], ['pause', 'steer'], ['steer', 'steer'], ['cancel', 'cancel']] as const;

function commandsOf({ series, index }: Offset): readonly Sent['type'][] {
  if (series === 'two at once') return pairs[index % pairs.length]!;
  return [series === 'approve' && index % 2 === 1 ? 'deny' : series];
}

const words = (live: LiveRun, at: number): string => `steered ${live.label} ${at}`;

async function send(live: LiveRun, type: Sent['type'], at = 0): Promise<Sent> {
  const { client } = cases.stage;
  const { id } = live;
  const call = { cancel: () => client.cancel(id), pause: () => client.pause(id), steer: () => client.steer(id, words(live, at)), approve: () => client.approve(id, 'c1'), deny: () => client.deny(id, 'c1') }[type];
  const answer = await call().then(() => 'accepted', (error: unknown) => {
    if (!(error instanceof ApiError)) throw error;
    return `${error.status} ${error.code}`;
  });
  return { type, answer };
}

/** A person: resumes what is paused, approves what waits; until the run has ended. Answers the decisions that it sent. */
async function attend(live: LiveRun, { approvesFrom }: { readonly approvesFrom: Promise<unknown> }): Promise<Sent[]> {
  const sent: Sent[] = [];
  let mayApprove = false;
  void approvesFrom.then(() => { mayApprove = true; });
  while (!live.seen.some((event) => event.type === 'run_end')) {
    const { pause_reason } = await cases.stage.client.run(live.id);
    if (pause_reason === 'requested') await cases.stage.client.resume(live.id).catch((error: unknown) => { if (!(error instanceof ApiError)) throw error; });
    if (pause_reason === 'approval' && mayApprove) sent.push(await send(live, 'approve'));
    await after(20);
  }
  return sent;
}

interface Outcome extends Played { readonly sent: readonly Sent[]; readonly offset: Offset }

async function playAt(offset: Offset): Promise<Outcome> {
  const { series, step, index } = offset;
  const label = `R21 ${series} ${step} ${index}`;
  const request = new Promise<void>((resolve) => { asked.set(label, resolve); });
  const ms = series === 'cancel' && step === 'tool start' ? endlessMs : workMs;
  const call = series === 'approve' ? tool('c1', 'ops__deploy', { t: 'x', ms }) : tool('c1', 't__note', { v: label, ms });
  const script = (body: ChatBody, count: number): ScriptedReply => {
    if (count === 0) asked.get(label)?.();
    if (resultCount(body) > 0) return text('done', { delayMs: thinkMs });
    return call.type === 'message' ? reply(call.message, { delayMs: thinkMs }) : call;
  };
  const live = await cases.begin(label, script, { agent: 'operator' });
  const now = moment(live, offset, request);
  const commanded = now.then(() => Promise.all(commandsOf(offset).map((type, at) => send(live, type, at))));
  // Where the command is to come after somebody else's word, that word is given at once.
  const attended = attend(live, { approvesFrom: step === 'model reply' || step === 'commit' ? commanded : Promise.resolve() });
  const sent = [...await commanded, ...await attended];
  return { ...await finish(cases, live, 60_000), sent, offset };
}

const accepted = (outcome: Outcome, type: Sent['type']): number => outcome.sent.filter((each) => each.type === type && each.answer === 'accepted').length;

/** What is wrong with how a run came out, in words. */
function problemsOf(outcome: Outcome): string[] {
  const { run, events, live, sent, requests, offset } = outcome;
  const problems: string[] = [];
  const say = (text: string): void => { problems.push(`${live.label}: ${text}; ${JSON.stringify(sent)}`); };
  const others = sent.filter(({ answer, type }) => answer !== 'accepted' && !answer.startsWith('409 ') && !(offset.series === 'approve' && (type === 'approve' || type === 'deny') && answer === '404 not_found'));
  if (others.length > 0) say('a command was answered neither 202 nor 409');
  const cancelled = accepted(outcome, 'cancel') > 0;
  if (run.status !== (cancelled ? 'cancelled' : 'completed')) say(`is ${run.status}`);
  const ends = ofType(events, 'state_change').filter((event) => event.new === 'cancelled' || event.new === 'completed');
  if (ends.length !== 1) say(`${ends.length} moves to an end`);

  const steers = ofType(events, 'steer').map(({ content }) => content).sort();
  if (steers.length !== accepted(outcome, 'steer') || new Set(steers).size !== steers.length) say(`steers became ${steers.join()}`);
  const told = messagesOf(requests.at(-1)).map(({ content }) => content).join('\n');
  if (!cancelled) for (const steer of steers) if (told.split(steer).length !== 2) say(`the model was told ${told.split(steer).length - 1} times of a steer`);
  const pauses = ofType(events, 'state_change').filter((event) => event.new === 'paused' && event.reason === 'requested').length;
  if (!cancelled && pauses !== accepted(outcome, 'pause')) say(`${pauses} pauses`);

  const decisions = ofType(events, 'approval_resolved').map(({ decision }) => decision);
  const given = [...Array.from({ length: accepted(outcome, 'approve') }, () => 'approve'), ...Array.from({ length: accepted(outcome, 'deny') }, () => 'deny')];
  if (decisions.join() !== given.join() || given.length > 1) say(`decisions ${decisions.join()}`);
  const starts = live.starts().length;
  if (starts > 1 || (!cancelled && starts !== (decisions[0] === 'deny' ? 0 : 1))) say(`the tool began ${starts} times`);
  return [...problems, ...cancelProblems(outcome, cancelled)];
}

/** By order, not by the clock: a tool that would go on for long was told, and nobody was asked or begun after the end. */
function cancelProblems({ live, events }: Outcome, cancelled: boolean): string[] {
  if (!cancelled) return [];
  const phases = cases.ledger().filter((line) => line.run_id === live.id).map((line) => line.phase);
  const endless = live.starts().some((line) => line.input['ms'] === endlessMs);
  const results = ofType(events, 'tool_result').map(({ outcome }) => outcome ?? 'ok');
  return [
    ...(endless && phases.join() !== 'start,cancelled' ? [`${live.label}: the tool was not told: ${phases.join()}`] : []),
    ...(endless && results.join() !== 'unknown' ? [`${live.label}: a tool that was stopped came out as ${results.join()}`] : []),
    ...(!endless && phases.length === 0 && results.some((outcome) => outcome !== 'not_started') ? [`${live.label}: a call that never began came out as ${results.join()}`] : []),
  ];
}

test.each(commands)('R21: %s at each offset around each step', async (series) => {
  const offsets = steps.flatMap((step) => Array.from({ length: perStep }, (_, index): Offset => ({ series, step, index })));
  const outcomes: Outcome[] = [];
  for (let from = 0; from < offsets.length; from += together) outcomes.push(...await Promise.all(offsets.slice(from, from + together).map(playAt)));
  expect(outcomes.flatMap(problemsOf)).toEqual([]);
  // Offsets that all met the same state would show nothing.
  const where = new Set(outcomes.map(({ events, sent }) => `${sent[0]!.answer} ${events.map(({ type }) => type).join()}`));
  expect(where.size).toBeGreaterThan(2);
}, scaled({ small: 120_000, large: 900_000 }));
