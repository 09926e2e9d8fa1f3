/** Kind 6, as far as one wire shows it: refusals, and when to come again. */
import { status, text } from '@treadle/testkit';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { finish, ofType, play, type Played } from './general-checks.ts';
import { startCases, type Cases, type Script } from './stage.ts';

const slots = 10;
let cases: Cases;
beforeAll(async () => {
  cases = await startCases({
    // What one case says of a quota holds for every run that asks the same model: such a case has models of its own.
    models: { first: {}, second: {}, used_up: {}, spare: {}, busy: {}, limited: {}, now: {} },
    chains: { two: ['first', 'second'], one: ['first'], quota: ['used_up', 'spare'], waiting: ['busy', 'limited'], now: ['now'] },
    agents: { hopper: { chain: 'two' }, single: { chain: 'one' }, patient: { chain: 'now' }, saver: { chain: 'quota' }, waiter: { chain: 'waiting', limits: { max_consecutive_errors: 5, same_error_limit: 20 } } },
    env: { WORKER_CONCURRENCY: String(slots) },
  });
  await cases.worker();
});
afterAll(async () => { await cases.stop(); });

const gapsS = ({ requests }: Played): number[] => requests.slice(1).map((request, index) => (request.at_ms - requests[index]!.at_ms) / 1000);
const models = ({ requests }: Played): unknown[] => requests.map((request) => request.body?.model);

describe.concurrent('Retry-After', () => {
  test('C32: as a date is waited for', async () => {
    const played = await play(cases, 'C32', (_, count) => count > 0 ? text('ok') : status(429, { 'retry-after': new Date(Math.ceil(Date.now() / 1000 + 4) * 1000).toUTCString() }, { error: 'slow' }));
    expect(played.run).toMatchObject({ status: 'completed', answer: 'ok' });
    expect(gapsS(played)[0]).toBeGreaterThanOrEqual(4);
    // The date lay five seconds ahead at most.
    const [refused] = ofType(played.events, 'error');
    expect(refused?.retry_in).toBeLessThanOrEqual(5);
  });

  test('C33: that cannot be read leads to growing pauses', async () => {
    const soon = status(429, { 'retry-after': 'soon' }, { error: 'slow' });
    const played = await play(cases, 'C33', [soon, soon, soon, text('ok')], { withinMs: 40_000 });
    expect(played.run.status).toBe('completed');
    const gaps = gapsS(played);
    expect(gaps).toHaveLength(3);
    // Base 2 s, up to half of it again as jitter.
    for (const [index, gap] of gaps.entries()) expect(gap).toBeGreaterThanOrEqual(2 ** (index + 1));
    const planned = ofType(played.events, 'error').map((event) => event.retry_in!);
    expect(planned).toHaveLength(3);
    for (const [index, wait] of planned.entries()) expect(wait).toBeLessThanOrEqual(2 ** (index + 1) * 1.5);
  }, 60_000);

  test('C33: of a used-up quota that is back "now", again and again, leads to growing pauses, too', async () => {
    const now = [{ 'retry-after': '0' }, { 'retry-after': 'Mon, 02 Nov 2020 10:00:00 GMT' }, { 'retry-after-ms': '0' }].map((headers) => status(429, headers, { error: 'usage limit reached, try again later' }));
    const played = await play(cases, 'C33 quota', [...now, text('ok')], { agent: 'patient' });
    expect(played.run).toMatchObject({ status: 'completed', answer: 'ok' });
    expect(ofType(played.events, 'error').map(({ action, retry_in }) => [action, retry_in])).toEqual([['park', 1], ['park', 2], ['park', 4]]);
    for (const [index, gap] of gapsS(played).entries()) expect(gap).toBeGreaterThanOrEqual(2 ** index);
  });
});

describe.concurrent('a refusal that waiting does not mend', () => {
  test('C34: a quota that is used up makes the next model answer at once, the log says when it will be back, and other runs do not ask before', async () => {
    const used: Script = (body) => body.model === 'spare' ? text('ok')
      : status(429, {}, { error: 'usage limit reached, try again in 47 minutes', resets_in_seconds: 2820 });
    const played = await play(cases, 'C34', used, { agent: 'saver' });
    expect(played.run).toMatchObject({ status: 'completed', answer: 'ok', model: 'spare' });
    expect(models(played)).toEqual(['used_up', 'spare']);
    expect(ofType(played.events, 'state_change').map((event) => event.new)).toEqual(['running', 'completed']);
    expect(ofType(played.events, 'error')).toMatchObject([{ error_type: 'quota_window', action: 'fallback', retry_in: 0, retry_after: 2820, detail: expect.stringContaining('47 minutes') as string }]);
    const other = await play(cases, 'C34 another run', used, { agent: 'saver' });
    expect(models(other)).toEqual(['spare']);
    expect(other.run).toMatchObject({ status: 'completed', turn_number: 1 });
    expect(ofType(other.events, 'model_request')).toMatchObject([{ model: 'spare', position: 1, skipped: [{ model: 'used_up', why: 'model_benched' }] }]);
    expect(ofType(other.events, 'error')).toEqual([]);
  });

  test('a server that knows no stream_options is asked without them, and answers', async () => {
    const played = await play(cases, 'stream_options', (body) => ('stream_options' in body
      ? status(400, {}, { error: { message: 'Unrecognized request argument supplied: stream_options', type: 'invalid_request_error', param: null, code: null } }) : text('ok')), { wire: 'openai' });
    expect(played.run).toMatchObject({ status: 'completed', answer: 'ok' });
    expect(played.requests).toHaveLength(2);
    expect(ofType(played.events, 'error')).toMatchObject([{ error_type: 'feature_unsupported', action: 'drop_feature', feature: 'stream_options', consecutive_errors: 0 }]);
  });

  test('C37: a body that is wrong is sent to each model once, the run fails with the provider’s words, and the next run is served', async () => {
    const refused = status(400, {}, { error: { type: 'invalid_request_error', message: 'unexpected field "foo"' } });
    const played = await play(cases, 'C37', () => refused, { agent: 'hopper' });
    expect(played.run).toMatchObject({ status: 'failed', stop_reason: 'irrecoverable_error', error: { error_type: 'invalid_request', detail: expect.stringContaining('unexpected field') as string } });
    expect(models(played)).toEqual(['first', 'second']);
    const another = await play(cases, 'C37 another', [text('ok')], { agent: 'hopper' });
    expect(models(another)).toEqual(['first']);
    expect(another.run.status).toBe('completed');
  });
});

describe.concurrent('a long wait', () => {
  test('C38: occupies no worker: with as many waiting runs as slots another one is served at once, and all wake by themselves', async () => {
    const waitS = 4;
    let backAtMs = Infinity;
    // The first model asks for a while and again, the second for a reset; then it answers.
    const script: Script = (body) => {
      if (body.model === 'busy') return status(429, { 'retry-after': String(waitS) }, { error: 'slow' });
      backAtMs = Math.min(backAtMs, Date.now() + 2 * waitS * 1000);
      return Date.now() >= backAtMs ? text('ok') : status(429, {}, { error: `usage limit reached, try again in ${Math.ceil((backAtMs - Date.now()) / 1000)} seconds` });
    };
    const live = await Promise.all(Array.from({ length: slots }, (_, index) => cases.begin(`C38 ${index}`, script, { agent: 'waiter' })));
    await Promise.all(live.map(async (each) => { while (!each.seen.some((event) => event.type === 'error')) await new Promise((resolve) => { setTimeout(resolve, 20); }); }));
    const eleventh = (await play(cases, 'C38 eleventh', [text('at once')])).run;
    expect(eleventh.answer).toBe('at once');
    const waits: unknown[] = [];
    for (const each of live) {
      const played = await finish(cases, each, 60_000);
      expect(played.run).toMatchObject({ status: 'completed', answer: 'ok', model: 'limited' });
      const asked = models(played);
      expect(asked.filter((model) => model === 'busy').length).toBeGreaterThanOrEqual(3);
      expect(gapsS(played)[0]).toBeGreaterThanOrEqual(waitS);
      expect(ofType(played.events, 'error')[0]).toMatchObject({ action: 'backoff', retry_in: waitS });
      // Were each slot held by one of these, nobody else could have been served before the first of them had ended.
      expect(Date.parse(eleventh.ended_at!)).toBeLessThan(Date.parse(played.run.ended_at!));
      waits.push(...played.events.filter((event) => event.type === 'state_change' && event.new === 'paused'));
    }
    // Whoever met the quota waited for its reset, and said until when.
    expect(waits.length).toBeGreaterThanOrEqual(1);
    for (const wait of waits) expect(wait).toMatchObject({ reason: 'quota', resumes_at: expect.any(String) as string });
  }, 90_000);
});
