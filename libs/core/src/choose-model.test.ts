/** Models that cannot be asked now: passed over, waited for, asked last; other keys, and waits too long for a delay. */
import { describe, expect, test } from 'vitest';
import { candidates, chooseModel } from './choose-model.ts';
import { lookAhead } from './codec.ts';
import { decide } from './decide.ts';
import type { EventBody } from './events.ts';
import { fixture, fold, model } from './fixture.ts';
import type { Limits } from './limits.ts';
import { maxParks } from './pausing.ts';
import { modelRequest } from './request.ts';
import { specOf, type RunState } from './state.ts';
import { noJudgement, type ModelFailure, type Prices, type TurnClaimed, type Unavailable } from './turn-input.ts';
import { noUsage, type Usage } from './usage.ts';

const now_s = 1_000_000;
const chain = (...names: string[]) => ({ spec: { chain: { name: 'c', models: names.map((name) => model(name, 1000)) } } });
const asked = (name: string, position: number): EventBody => (
  { type: 'model_request', model: name, provider: 'p', chain: 'c', position, canary: false, skipped: [], estimated_tokens: 1, message_count: 1 });
const ended: EventBody = { type: 'turn_end', duration: 1, usage: { input_tokens: 0, output_tokens: 0, cached_tokens: 0, wasted_tokens: 0, cost_usd: 0 } };
/** Between two turns, with a chain of these models. */
const idle = (...names: string[]): RunState => fixture({ ...chain(...names), events: [asked(names[0]!, 0), ended] });
const away = (name: string, seconds: number | null, why: Unavailable['why'] = 'breaker_open'): Unavailable => (
  { model: name, why, wait: seconds === null ? null : { until_s: now_s + seconds, wait_ms: seconds * 1000 } });

function claimed(state: RunState, over: Partial<TurnClaimed> = {}) {
  return decide(state, {
    type: 'turn_claimed', unavailable: [], now_s, room_ms: 0, worker: 'w', deliveries: 1, poison_limit: 3, nudges: 0, nudge_limit: 5, wait_ms: 0, begun: [],
    judgement: noJudgement, tools: null, history: null, tool_problems: [], commands: [], ...over });
}

describe('at selection', () => {
  test('a model that is away is passed over within the turn, and the request says so', () => {
    const { events, effect } = claimed(idle('m1', 'm2'), { unavailable: [away('m1', 20)] });
    expect(events.map((event) => event.type)).toEqual(['turn_start', 'model_request']);
    expect(events.at(-1)).toMatchObject({ model: 'm2', position: 1, skipped: [{ model: 'm1', why: 'breaker_open' }] });
    expect(effect).toMatchObject({ type: 'call_model', model: { name: 'm2' } });
  });

  test('the run stays where it went', () => {
    const hopped = fold(idle('m1', 'm2'), claimed(idle('m1', 'm2'), { unavailable: [away('m1', 20)] }));
    expect(hopped).toMatchObject({ position: 1, model: 'm2', model_errors: 0 });
    expect(claimed(fold(hopped, { events: [ended], effect: { type: 'hand_over', delay_ms: 0 } })).effect).toMatchObject({ model: { name: 'm2' } });
  });

  test('with all away the run waits for the first, without a turn', () => {
    const state = idle('m1', 'm2');
    const decision = claimed(state, { unavailable: [away('m1', 30), away('m2', 12, 'credential_benched')] });
    expect(decision.events).toEqual([{ type: 'state_change', old: 'running', new: 'paused', reason: 'quota', resumes_at: new Date((now_s + 12) * 1000).toISOString() }]);
    expect(decision.effect).toEqual({ type: 'pause', delay_ms: 12_000 });
    expect(fold(state, decision)).toMatchObject({ status: 'paused', pause_reason: 'quota', turn_number: 1, resumes_at: new Date((now_s + 12) * 1000).toISOString(), parks: 1 });
  });

  test('open breakers alone are a wait for models', () => {
    expect(claimed(idle('m1'), { unavailable: [away('m1', 30)] }).events).toMatchObject([{ reason: 'models' }]);
  });

  test('what waiting does not mend is asked last, but asked', () => {
    const dead = away('m1', null, 'credential_benched');
    expect(claimed(idle('m1', 'm2'), { unavailable: [dead] }).effect).toMatchObject({ model: { name: 'm2' } });
    expect(claimed(idle('m1'), { unavailable: [dead] }).effect).toMatchObject({ type: 'call_model', model: { name: 'm1' } });
    expect(claimed(idle('m1', 'm2'), { unavailable: [dead, away('m2', 5)] }).effect).toEqual({ type: 'pause', delay_ms: 5000 });
  });

  test('an open turn that was taken over waits with its turn open, and goes on in it', () => {
    const open = fixture({ ...chain('m1'), events: [asked('m1', 0)] });
    const waiting = fold(open, claimed(open, { unavailable: [away('m1', 9)] }));
    expect(waiting).toMatchObject({ status: 'paused', turn_open: true });
    const woken = claimed(waiting);
    expect(woken.events.map((event) => event.type)).toEqual(['state_change', 'turn_start', 'model_request']);
    expect(woken.events[1]).toMatchObject({ attempt: 2 });
  });

  test('a run that only ever waits ends', () => {
    let state = idle('m1');
    for (let n = 0; n < maxParks; n++) {
      const waiting = claimed(state, { unavailable: [away('m1', 5)] });
      expect(waiting.effect.type).toBe('pause');
      state = fold(state, waiting);
    }
    expect(fold(state, claimed(state, { unavailable: [away('m1', 5)] }))).toMatchObject({ status: 'failed', stop_reason: 'model_unavailable' });
  });

  test('rates without room are a delay, or a pause where it is long; neither is a turn', () => {
    expect(claimed(idle('m1'), { room_ms: 700 })).toEqual({ events: [], effect: { type: 'hand_over', delay_ms: 700 } });
    expect(claimed(idle('m1'), { room_ms: 90_000 })).toMatchObject({ events: [{ reason: 'quota' }], effect: { type: 'pause', delay_ms: 90_000 } });
  });

  test('the order is that of the chain, behind the model that the run is on', () => {
    const state = { ...idle('m1', 'm2', 'm3'), position: 1, tried: [1] };
    expect(chooseModel(state, { unavailable: [] })).toMatchObject({ position: 1 });
    expect(chooseModel(state, { unavailable: [away('m2', 1)] })).toMatchObject({ position: 0 });
    expect(chooseModel({ ...state, tried: [0, 1] }, { unavailable: [away('m2', 1)] })).toMatchObject({ position: 2 });
    expect(specOf(state).chain.models).toHaveLength(3);
  });
});

describe('a run that waits for a provider', () => {
  const waiting = (): RunState => fold(idle('m1'), claimed(idle('m1'), { unavailable: [away('m1', 30)] }));

  test('that is woken early by what somebody says waits on', () => {
    expect(claimed(waiting(), { wait_ms: 4000, commands: [{ type: 'steer', text: 'hurry' }] })).toEqual({ events: [{ type: 'steer', content: 'hurry' }], effect: { type: 'pause', delay_ms: 4000 } });
  });

  test('goes on at once when somebody resumes it', () => {
    expect(claimed(waiting(), { wait_ms: 4000, commands: [{ type: 'resume' }] }).effect.type).toBe('call_model');
  });

  test('that somebody pauses waits for that person', () => {
    const decision = claimed(waiting(), { wait_ms: 4000, commands: [{ type: 'pause' }] });
    expect(decision.effect).toEqual({ type: 'pause' });
    expect(fold(waiting(), decision)).toMatchObject({ status: 'paused', pause_reason: 'requested', resumes_at: null });
  });

  test('is cancelled while it waits', () => {
    expect(fold(waiting(), claimed(waiting(), { wait_ms: 4000, commands: [{ type: 'cancel' }] }))).toMatchObject({ status: 'cancelled' });
  });
});

describe('a failed call', () => {
  const failed = (state: RunState, failure: Partial<ModelFailure> & Pick<ModelFailure, 'error_type'>, unavailable: readonly Unavailable[] = []) => decide(state, {
    type: 'model_failed', unavailable, now_s, elapsed_s: 1, timed_out: null, jitter: 0, commands: [],
    failure: { detail: 'no', retry_after_s: null, partial_text: '', usage: null, ...failure } });
  const asking = (...names: string[]) => fixture({ ...chain(...names), events: [asked(names[0]!, 0)] });

  test.each([
    ['auth_invalid', null], ['billing_exhausted', null], ['quota_window', 2820], ['rate_limited', 61],
  ] as const)('%s with another key free: the same request again, in the same turn', (error_type, retry_after_s) => {
    const state = asking('m1', 'm2');
    const decision = failed(state, { error_type, retry_after_s, other_key: true });
    expect(decision.events.map((event) => event.type)).toEqual(['error', 'model_request']);
    expect(decision.events[0]).toMatchObject({ action: 'rotate_credential', consecutive_errors: 1, retry_in: 0 });
    expect(decision.effect).toMatchObject({ type: 'call_model', model: { name: 'm1' } });
    expect(fold(state, decision)).toMatchObject({ turn_number: 1, turn_open: true });
  });

  test('a feature that the request can do without is left out once, for that model alone', () => {
    const picture: EventBody = { type: 'user_message', content: [{ type: 'text', text: 'see' }, { type: 'image', media_type: 'image/png', data: 'AAAA' }] };
    const state = fixture({ spec: { chain: { name: 'c', models: [{ ...model('m1', 5000), supports_images: true }, { ...model('m2', 5000), supports_images: true }] } }, events: [picture, asked('m1', 0)] });
    const first = failed(state, { error_type: 'feature_unsupported', feature: 'images' });
    expect(first.events[0]).toMatchObject({ action: 'drop_feature', feature: 'images', site: null, consecutive_errors: 0 });
    expect(first.effect).toEqual({ type: 'hand_over', delay_ms: 0 });
    const after = fold(state, first);
    const [m1, m2] = specOf(after).chain.models;
    expect(modelRequest(after, m1!)).toMatchObject({ model: { supports_images: false }, without: ['images'] });
    expect(modelRequest(after, m2!)).toMatchObject({ model: { supports_images: true } });
    const again = fold(after, claimed(after));
    expect(failed(again, { error_type: 'feature_unsupported', feature: 'images' }).events[0]).toMatchObject({ action: 'fallback', to_model: 'm2' });
  });

  test('a feature that it cannot do without, or does not use, is not left out', () => {
    expect(failed(asking('m1', 'm2'), { error_type: 'feature_unsupported' }).events[0]).toMatchObject({ action: 'fallback' });
    expect(failed(asking('m1', 'm2'), { error_type: 'feature_unsupported', feature: 'images' }).events[0]).toMatchObject({ action: 'fallback' });
  });

  test('the first burst is waited out, the second changes the key', () => {
    const state = asking('m1');
    const first = failed(state, { error_type: 'rate_limited', retry_after_s: 7, other_key: true });
    expect(first.effect).toEqual({ type: 'hand_over', delay_ms: 7000 });
    const again = fold(fold(state, first), claimed(fold(state, first)));
    expect(failed(again, { error_type: 'rate_limited', retry_after_s: 7, other_key: true }).events[0]).toMatchObject({ action: 'rotate_credential' });
  });

  test.each(['overloaded', 'access_denied', 'server_error', 'invalid_request'] as const)('%s never changes the key', (error_type) => {
    expect(failed(asking('m1', 'm2'), { error_type, other_key: true }).events[0]).not.toMatchObject({ action: 'rotate_credential' });
  });

  test('keys are changed as often as the error budget says', () => {
    const state = { ...asking('m1', 'm2'), consecutive_errors: 3 };
    expect(failed(state, { error_type: 'auth_invalid', other_key: true }).events[0]).toMatchObject({ action: 'fallback', to_model: 'm2' });
  });

  test('a quota hops at once, and says when it is over', () => {
    expect(failed(asking('m1', 'm2'), { error_type: 'quota_window', retry_after_s: 2820 }).events[0]).toMatchObject({ action: 'fallback', to_model: 'm2', retry_after: 2820, consecutive_errors: 0 });
  });

  test('with nowhere to go it waits for its end, and no worker does', () => {
    const state = asking('m1');
    const decision = failed(state, { error_type: 'quota_window', retry_after_s: 2820 });
    expect(decision.events.map((event) => event.type)).toEqual(['error', 'turn_end', 'state_change']);
    expect(decision.events[0]).toMatchObject({ action: 'park', retry_in: 2820, consecutive_errors: 0 });
    expect(decision.effect).toEqual({ type: 'pause', delay_ms: 2_820_000 });
    expect(fold(state, decision)).toMatchObject({ pause_reason: 'quota', resumes_at: new Date((now_s + 2820) * 1000).toISOString() });
  });

  test('C33: one that is over "now", again and again, is waited for longer each time', () => {
    const waits = [0, 1, 2, 3, 19].map((parks) => failed({ ...asking('m1'), parks }, { error_type: 'quota_window', retry_after_s: 0 }).events[0]);
    expect(waits.map((event) => (event as { retry_in: number }).retry_in)).toEqual([1, 2, 4, 8, 30]);
    expect(failed({ ...asking('m1'), parks: 2 }, { error_type: 'quota_window', retry_after_s: 2820 }).events[0]).toMatchObject({ action: 'park', retry_in: 2820 });
  });

  test('a burst of over a minute hops where it can, else it is a pause', () => {
    expect(failed(asking('m1', 'm2'), { error_type: 'rate_limited', retry_after_s: 61 }).events[0]).toMatchObject({ action: 'fallback' });
    expect(failed(asking('m1'), { error_type: 'rate_limited', retry_after_s: 61 })).toMatchObject({ events: [{ action: 'park' }, {}, { reason: 'quota' }], effect: { type: 'pause', delay_ms: 61_000 } });
    expect(failed(asking('m1'), { error_type: 'rate_limited', retry_after_s: 60 }).effect).toEqual({ type: 'hand_over', delay_ms: 60_000 });
  });

  test('a hop passes over what is away, and waits where all that is left is', () => {
    const state = asking('m1', 'm2', 'm3');
    expect(failed(state, { error_type: 'content_blocked' }, [away('m2', 9)]).events[0]).toMatchObject({ action: 'fallback', to_model: 'm3' });
    const decision = failed(state, { error_type: 'content_blocked' }, [away('m2', 9), away('m3', 4)]);
    expect(decision.events[0]).toMatchObject({ action: 'park', retry_in: 4 });
    expect(fold(state, decision)).toMatchObject({ pause_reason: 'models' });
  });

  test('what was refused for its content is not sent there again after a wait', () => {
    const state = asking('m1', 'm2');
    const waiting = fold(state, failed(state, { error_type: 'content_blocked' }, [away('m2', 9)]));
    expect(claimed(waiting).events.at(-1)).toMatchObject({ type: 'model_request', model: 'm2' });
  });
});

describe('what a run can pay for', () => {
  /** Some ten tokens of prompt for every model: `pad` more characters, a quarter of a token each. */
  const spending = (limits: Partial<Limits>, usage: Partial<Usage> = {}, pad = 0): RunState => {
    const state = fixture({ ...chain('m1', 'm2', 'm3'), limits, events: [asked('m1', 0), { ...ended, usage: { ...noUsage, ...usage } } as EventBody] });
    return pad === 0 ? state : lookAhead(state, [{ type: 'steer', content: 'x'.repeat(pad) }]);
  };
  const free = { input_per_mtok: 0, output_per_mtok: 0 };
  /** A cent per token. */
  const dear = { input_per_mtok: 10_000, output_per_mtok: 0 };

  interface Row {
    readonly name: string; readonly limits?: Partial<Limits>; readonly used?: Partial<Usage>; readonly prices?: Prices; readonly away?: readonly Unavailable[]; readonly pad?: number;
    readonly expected: string;
  }
  const rows: readonly Row[] = [
    { name: 'without a budget every target is taken', prices: { m2: dear }, expected: 'm2' },
    { name: 'without a price, too', limits: { max_cost_usd: 0.000001 }, expected: 'm2' },
    { name: 'a target that is free is taken', limits: { max_cost_usd: 0.000001 }, prices: { m2: free }, expected: 'm2' },
    { name: 'one that the budget can pay is taken', limits: { max_cost_usd: 0.5 }, prices: { m2: dear }, expected: 'm2' },
    { name: 'one that would break it is passed over', limits: { max_cost_usd: 0.01 }, prices: { m2: dear }, expected: 'm3, not m2 (cost_budget)' },
    { name: 'what is left counts, not the whole', limits: { max_cost_usd: 0.5 }, used: { cost_usd: 0.495 }, prices: { m2: dear }, expected: 'm3, not m2 (cost_budget)' },
    { name: 'a longer prompt costs more', limits: { max_cost_usd: 0.5 }, prices: { m2: dear }, pad: 3000, expected: 'm3, not m2 (cost_budget)' },
    { name: 'the price of the reply is not certain', limits: { max_cost_usd: 0.01 }, prices: { m2: { input_per_mtok: 0, output_per_mtok: 10_000 } }, expected: 'm2' },
    { name: 'with nothing left that can be paid the run ends', limits: { max_cost_usd: 0.01 }, prices: { m2: dear, m3: dear }, expected: 'expired: cost_budget' },
    { name: 'a target that can be paid and is away is waited for', limits: { max_cost_usd: 0.01 }, prices: { m2: dear }, away: [away('m3', 30)], expected: 'waits for m3' },
    { name: 'tokens are a budget, too', limits: { max_total_tokens: 100 }, used: { input_tokens: 97 }, expected: 'expired: token_budget' },
    { name: 'wasted tokens are used up', limits: { max_total_tokens: 100 }, used: { wasted_tokens: 97 }, expected: 'expired: token_budget' },
    { name: 'with room for the prompt the next is taken', limits: { max_total_tokens: 200 }, used: { input_tokens: 90 }, expected: 'm2' },
  ];
  test.each(rows)('at a hop: $name', ({ limits = {}, used = {}, prices, away: unavailable = [], pad, expected }) => {
    const open = lookAhead(spending(limits, used, pad), [{ type: 'turn_start', attempt: 1, worker: 'w' }, asked('m1', 0)]);
    const failure: ModelFailure = { error_type: 'content_blocked', detail: '', retry_after_s: null, partial_text: '', usage: null };
    const decision = decide(open, { type: 'model_failed', unavailable, prices, now_s, failure, elapsed_s: 1, timed_out: null, jitter: 0, commands: [] });
    const after = fold(open, decision);
    if (after.status === 'expired') return expect(`expired: ${after.stop_reason}`).toBe(expected);
    if (after.status === 'paused') return expect(`waits for ${specOf(after).chain.models[after.position]?.name}`).toBe(expected);
    expect(decision.events[0]).toMatchObject({ type: 'error', action: 'fallback' });
    const request = claimed(after, { unavailable, prices }).events.at(-1);
    return expect(request?.type === 'model_request' ? [request.model, ...request.skipped.map(({ model: name, why }) => `not ${name} (${why})`)].join(', ') : '').toBe(expected);
  });

  test('at selection the same holds for whom a model that is away gives way to, and the request says so', () => {
    const state = spending({ max_cost_usd: 0.01 });
    const { events } = claimed(state, { unavailable: [away('m1', 20)], prices: { m2: dear } });
    expect(events.at(-1)).toMatchObject({ type: 'model_request', model: 'm3', skipped: [{ model: 'm1', why: 'breaker_open' }, { model: 'm2', why: 'cost_budget' }] });
    expect(claimed(state, { unavailable: [away('m1', 20)], prices: { m2: dear, m3: dear } }).effect).toEqual({ type: 'pause', delay_ms: 20_000 });
  });

  test('whom a hop has passed over stands in the first request behind it alone', () => {
    const failure: ModelFailure = { error_type: 'content_blocked', detail: '', retry_after_s: null, partial_text: '', usage: null };
    const open = fixture({ ...chain('m1', 'm2', 'm3'), events: [asked('m1', 0)] });
    const unavailable = [away('m2', 20)];
    const hopped = fold(open, decide(open, { type: 'model_failed', unavailable, now_s, failure, elapsed_s: 1, timed_out: null, jitter: 0, commands: [] }));
    const request = claimed(hopped, { unavailable });
    expect(request.events.at(-1)).toMatchObject({ model: 'm3', skipped: [{ model: 'm2', why: 'breaker_open' }] });
    const later = lookAhead(fold(hopped, request), [{ type: 'assistant_text', content: 'x', is_final: true, attempt: 1 }, ended]);
    expect(claimed({ ...later, candidate: null }, { unavailable }).events.at(-1)).toMatchObject({ model: 'm3', skipped: [] });
  });

  test('the model that the run is on is asked as long as the budget is not used up', () => {
    const state = spending({ max_cost_usd: 0.01 });
    expect(claimed(state, { prices: { m1: dear, m2: dear, m3: dear } }).effect).toMatchObject({ type: 'call_model', model: { name: 'm1' } });
    expect(candidates(state, { m1: dear, m2: dear }).map(({ name }) => name)).toEqual(['m1', 'm3']);
  });

  test('a larger window that cannot be paid for is no way out', () => {
    const models = [model('m1', 500), model('m2', 4000)];
    const state = lookAhead(fixture({ spec: { chain: { name: 'c', models } }, limits: { max_cost_usd: 0.3 }, events: [asked('m1', 0), ended] }), [{ type: 'steer', content: 'x'.repeat(3000) }]);
    const outcome = (prices: Prices) => fold(state, claimed(state, { prices }));
    expect(outcome({})).toMatchObject({ status: 'running', model: 'm2' });
    expect(outcome({ m2: dear })).toMatchObject({ status: 'expired', stop_reason: 'cost_budget' });
  });
});
