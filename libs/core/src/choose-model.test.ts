/** Models that cannot be asked now: passed over, waited for, asked last; other keys, and waits too long for a delay. */
import { describe, expect, test } from 'vitest';
import { chooseModel } from './choose-model.ts';
import { decide } from './decide.ts';
import type { EventBody } from './events.ts';
import { fixture, fold, model } from './fixture.ts';
import { maxParks } from './pausing.ts';
import { modelRequest } from './request.ts';
import { specOf, type RunState } from './state.ts';
import { noJudgement, type ModelFailure, type TurnClaimed, type Unavailable } from './turn-input.ts';

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
    expect(chooseModel(state, [])).toMatchObject({ position: 1 });
    expect(chooseModel(state, [away('m2', 1)])).toMatchObject({ position: 0 });
    expect(chooseModel({ ...state, tried: [0, 1] }, [away('m2', 1)])).toMatchObject({ position: 2 });
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
