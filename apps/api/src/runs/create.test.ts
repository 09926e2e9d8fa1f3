import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { asked, createdRun, createTestApi, ends, begins, keysOf, type TestApi } from '../fixtures/test-api.ts';
import { runSchema } from './run-schema.ts';

let api: TestApi;
beforeAll(() => { api = createTestApi(); });
afterAll(() => api.close());

const post = (body: unknown, headers: Record<string, string> = {}, token = keysOf.alpha) =>
  api.app.inject({ method: 'POST', url: '/v1/runs', ...asked(token, body, headers) });

const image = (bytes: number) => ({ type: 'image', media_type: 'image/png', data: Buffer.alloc(bytes, 7).toString('base64') });

describe('a new run', () => {
  test('is answered 202 with the run and where it is', async () => {
    const answer = await post({ input: 'hello', tags: ['a', 'b', 'a'], metadata: { order: 7 }, limits: { max_turns: 3 }, priority: 1 });
    expect(answer.statusCode).toBe(202);
    const run = answer.json();
    expect(answer.headers.location).toBe(`/v1/runs/${run.id}`);
    expect(runSchema.safeParse(run).error).toBeUndefined();
    expect(run).toMatchObject({ agent: 'assistant', status: 'queued', tags: ['a', 'b'], metadata: { order: 7 }, priority: 1, last_seq: 2, run_at: null });
    expect(run.limits.max_turns).toBe(3);
    const read = await api.app.inject({ url: `/v1/runs/${run.id}`, ...asked(keysOf.alpha) });
    expect(read.json()).toEqual(run);
  });

  test('has defaults for all but the input', async () => {
    expect((await post({ input: 'x' })).json()).toMatchObject({ agent: 'assistant', priority: 50, tags: [], metadata: {}, limits: { max_turns: 10 } });
  });

  test('waits for run_at, which is kept in UTC; a past one is allowed', async () => {
    expect((await post({ input: 'x', run_at: '2999-01-01T02:00:00+02:00' })).json().run_at).toBe('2999-01-01T00:00:00.000Z');
    expect((await post({ input: 'x', run_at: '2001-01-01T00:00:00Z' })).statusCode).toBe(202);
  });

  test('goes along another chain where one is named, as another version of its agent; an unknown one is refused with those there are', async () => {
    const [usual, other] = [(await post({ input: 'x' })).json(), (await post({ input: 'x', chain: 'eyes' })).json()];
    expect([usual.chain, other.chain]).toEqual(['default', 'eyes']);
    expect(other.agent_version).not.toBe(usual.agent_version);
    const log = await api.app.inject({ url: `/v1/runs/${other.id}/events`, ...asked(keysOf.alpha) });
    expect(log.json().data[0]).toMatchObject({ chain: 'eyes', agent_spec: { name: 'assistant', chain: { name: 'eyes' } } });
    expect((await post({ input: [image(10)], chain: 'eyes' })).statusCode).toBe(202);
    const refused = await post({ input: 'x', chain: 'nothing' });
    expect([refused.statusCode, refused.json().errors]).toEqual([422, [{ path: 'chain', problem: 'unknown chain; there are: default, eyes' }]]);
  });

  test('takes content parts, images too where a model of the agent sees them', async () => {
    const input = [{ type: 'text', text: 'what is this?' }, image(10)];
    expect((await post({ agent: 'seer', input })).statusCode).toBe(202);
    const refused = await post({ input });
    expect([refused.statusCode, refused.json().code, refused.json().errors[0].path]).toEqual([422, 'invalid_request', 'input.1']);
  });

  test('never holds half a character', async () => {
    const answer = await api.app.inject({
      method: 'POST', url: '/v1/runs', ...asked(keysOf.alpha, undefined, { 'content-type': 'application/json' }),
      payload: '{"input":"Hello \\ud800 world","metadata":{"k\\udc00":"\\ud83d"},"tags":["t\\ud800"]}',
    });
    expect(answer.json()).toMatchObject({ metadata: { 'k\ufffd': '\ufffd' }, tags: ['t\ufffd'] });
    const events = await api.app.inject({ url: `/v1/runs/${answer.json().id}/events`, ...asked(keysOf.alpha) });
    expect(events.json().data[1].content).toBe('Hello \ufffd world');
  });
});

describe('a bad request', () => {
  const cases: [string, unknown, number, string, string?][] = [
    ['no body', undefined, 422, 'invalid_request', ''],
    ['a list', [], 422, 'invalid_request', ''],
    ['null', null, 422, 'invalid_request', ''],
    ['no input', {}, 422, 'invalid_request', 'input'],
    ['an empty input', { input: '' }, 422, 'invalid_request', 'input'],
    ['a blank input', { input: ' \n' }, 422, 'invalid_request', 'input'],
    ['a number as input', { input: 5 }, 422, 'invalid_request', 'input'],
    ['no parts', { input: [] }, 422, 'invalid_request', 'input'],
    ['blank parts', { input: [{ type: 'text', text: '' }] }, 422, 'invalid_request', 'input'],
    ['too many parts', { input: Array.from({ length: 101 }, () => ({ type: 'text', text: 'x' })) }, 422, 'invalid_request', 'input'],
    ['an unknown part', { input: [{ type: 'video' }] }, 422, 'invalid_request', 'input.0.type'],
    ['an unknown field of a part', { input: [{ type: 'text', text: 'x', bold: true }] }, 422, 'invalid_request', 'input.0.bold'],
    ['broken base64', { agent: 'seer', input: [{ ...image(3), data: 'a$==' }] }, 422, 'invalid_request', 'input.0.data'],
    ['a data URL', { agent: 'seer', input: [{ ...image(3), data: 'data:image/png;base64,AAAA' }] }, 422, 'invalid_request', 'input.0.data'],
    ['an unknown kind of image', { agent: 'seer', input: [{ ...image(3), media_type: 'image/tiff' }] }, 422, 'invalid_request', 'input.0.media_type'],
    ['an image by URL', { input: [{ type: 'image', url: 'http://x/y.png' }] }, 422, 'not_supported', 'input.0.url'],
    ['an unknown field', { input: 'x', colour: 'red' }, 422, 'invalid_request', 'colour'],
    ['an unknown limit', { input: 'x', limits: { max_fun: 1 } }, 422, 'invalid_request', 'limits.max_fun'],
    ['a limit that nobody knows', { input: 'x', limits: { max_breadth: 1 } }, 422, 'invalid_request', 'limits.max_breadth'],
    ['too small a part', { input: 'x', limits: { compact_at: 0.05 } }, 422, 'invalid_request', 'limits.compact_at'],
    ['no tokens at all', { input: 'x', limits: { max_total_tokens: 0 } }, 422, 'invalid_request', 'limits.max_total_tokens'],
    ['a cost of nothing', { input: 'x', limits: { max_cost_usd: 0 } }, 422, 'invalid_request', 'limits.max_cost_usd'],
    ['a first turn above the maximum', { input: 'x', limits: { turn_timeout_s: { first: 1000, default: 2 } } }, 422, 'limit_above_maximum', 'limits.turn_timeout_s'],
    ['a first turn and nothing for the rest', { input: 'x', limits: { turn_timeout_s: { first: 1 } } }, 422, 'invalid_request', 'limits.turn_timeout_s.default'],
    ['a limit above the maximum', { input: 'x', limits: { max_turns: 11 } }, 422, 'limit_above_maximum', 'limits.max_turns'],
    ['a limit of zero', { input: 'x', limits: { max_turns: 0 } }, 422, 'invalid_request', 'limits.max_turns'],
    ['a limit in words', { input: 'x', limits: { max_turns: '5' } }, 422, 'invalid_request', 'limits.max_turns'],
    ['a null limit', { input: 'x', limits: { max_turns: null } }, 422, 'invalid_request', 'limits.max_turns'],
    ['half a turn', { input: 'x', limits: { max_turns: 1.5 } }, 422, 'invalid_request', 'limits.max_turns'],
    ['too many tags', { input: 'x', tags: Array.from({ length: 21 }, (_, n) => `t${n}`) }, 422, 'invalid_request', 'tags'],
    ['a long tag', { input: 'x', tags: ['t'.repeat(65)] }, 422, 'invalid_request', 'tags.0'],
    ['an empty tag', { input: 'x', tags: [''] }, 422, 'invalid_request', 'tags.0'],
    ['metadata that is a list', { input: 'x', metadata: [1] }, 422, 'invalid_request', 'metadata'],
    ['large metadata', { input: 'x', metadata: { k: 'é'.repeat(8200) } }, 422, 'invalid_request', 'metadata'],
    ['priority 0', { input: 'x', priority: 0 }, 422, 'invalid_request', 'priority'],
    ['priority 101', { input: 'x', priority: 101 }, 422, 'invalid_request', 'priority'],
    ['a time without a zone', { input: 'x', run_at: '2030-01-01T00:00:00' }, 422, 'invalid_request', 'run_at'],
    ['the thirtieth of February', { input: 'x', run_at: '2030-02-30T00:00:00Z' }, 422, 'invalid_request', 'run_at'],
    ['a time that is in the year 10000 elsewhere', { input: 'x', run_at: '9999-12-31T23:59:59-14:00' }, 422, 'invalid_request', 'run_at'],
    ['a time before the year 0', { input: 'x', run_at: '0000-01-01T00:00:00+14:00' }, 422, 'invalid_request', 'run_at'],
    ['a number as agent', { input: 'x', agent: 5 }, 422, 'invalid_request', 'agent'],
    ['an unknown agent', { input: 'x', agent: 'nobody' }, 404, 'agent_not_found', 'agent'],
    ['an agent of the prototype', { input: 'x', agent: '__proto__' }, 404, 'agent_not_found', 'agent'],
    ...['concurrency_key', 'start_within_s']
      .map((field): [string, unknown, number, string, string] => [`${field}, of a later release`, { input: 'x', [field]: 'y' }, 422, 'not_supported', field]),
  ];

  test.each(cases)('%s', async (_name, body, status, code, path) => {
    const before = api.memory.writes;
    const answer = await post(body === null ? 'null' : body, body === null ? { 'content-type': 'application/json' } : {});
    expect([answer.statusCode, answer.headers['content-type']]).toEqual([status, 'application/problem+json']);
    expect(answer.json()).toMatchObject({ code, status, type: `urn:treadle:problem:${code}` });
    expect(answer.json().errors.map((error: { path: string }) => error.path)).toContain(path);
    expect(api.memory.writes).toBe(before);
  });

  test('an input that is missing or of a wrong type is told what it should be', async () => {
    const problem = async (body: object) => (await post(body)).json<{ errors: { path: string; problem: string }[] }>().errors[0]!;
    expect(await problem({})).toEqual({ path: 'input', problem: expect.stringMatching(/^is missing; expected a text, or a list of parts/) });
    for (const input of [5, null, {}, true]) expect(await problem({ input })).toEqual({ path: 'input', problem: expect.stringMatching(/^expected a text, or a list of parts/) });
  });

  test('without an agent where the default is not configured names the field', async () => {
    const own = createTestApi({ options: { defaultAgent: 'nobody' } });
    const answer = await own.app.inject({ method: 'POST', url: '/v1/runs', ...asked(keysOf.alpha, { input: 'x' }) });
    expect([answer.statusCode, answer.json().code, answer.json().errors]).toEqual([422, 'invalid_request', [{ path: 'agent', problem: expect.stringContaining('"nobody"') }]]);
    await own.close();
  });

  const raw = (payload: string | Buffer, type = 'application/json') =>
    api.app.inject({ method: 'POST', url: '/v1/runs', ...asked(keysOf.alpha, undefined, { 'content-type': type }), payload });

  test('what is not JSON, or not UTF-8', async () => {
    for (const payload of ['{', '{"input":"x"} trailing', "{'input':'x'}", Buffer.from([0x22, 0xff, 0x22])]) {
      const answer = await raw(payload);
      expect([answer.statusCode, answer.json().code]).toEqual([400, 'invalid_json']);
    }
  });

  test('what is no application/json', async () => {
    for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x', 'nonsense']) {
      const answer = await raw('{"input":"x"}', type);
      expect([answer.statusCode, answer.json().code]).toEqual([415, 'unsupported_media_type']);
    }
  });

  test('more than 1 MiB; a little less passes', async () => {
    const most = 1024 * 1024 - '{"input":""}'.length;
    expect((await raw(`{"input":"${'x'.repeat(most)}"}`)).statusCode).toBe(202);
    const answer = await raw(`{"input":"${'x'.repeat(most + 1)}"}`);
    expect([answer.statusCode, answer.json().code]).toEqual([413, 'body_too_large']);
  });

  test('nested without end, or with a field that would reach the prototype', async () => {
    for (const payload of [`{"input":"x","metadata":{"a":${'['.repeat(200_000)}${']'.repeat(200_000)}}}`, '{"input":"x","metadata":{"__proto__":{"a":1}}}']) {
      const answer = await raw(payload);
      expect([answer.statusCode, answer.json().code]).toEqual([422, 'invalid_request']);
    }
  });

  test('an image that is too large, where bodies may be', async () => {
    const roomy = createTestApi({ options: { maxBodyBytes: 20 * 1024 * 1024 } });
    const give = (bytes: number) => roomy.app.inject({ method: 'POST', url: '/v1/runs', ...asked(keysOf.alpha, { agent: 'seer', input: [image(bytes)] }) });
    expect((await give(5 * 1024 * 1024)).statusCode).toBe(202);
    const answer = await give(5 * 1024 * 1024 + 1);
    expect([answer.statusCode, answer.json().errors[0].path]).toEqual([422, 'input.0.data']);
    await roomy.close();
  });
});

describe('an idempotency key', () => {
  test('is one run under 50 parallel requests, one of them 202', async () => {
    const answers = await Promise.all(Array.from({ length: 50 }, () => post({ input: 'once', metadata: { a: 1, b: 2 } }, { 'idempotency-key': 'fifty' })));
    expect(new Set(answers.map((answer) => answer.json().id)).size).toBe(1);
    expect(answers.map((answer) => answer.statusCode).sort()).toEqual([...Array.from({ length: 49 }, () => 200), 202]);
    expect(api.memory.jobs().filter((job) => job.run_id === answers[0]!.json().id)).toHaveLength(1);
  });

  test('does not mind the order of fields, and minds everything else', async () => {
    const first = await post({ input: 'x', metadata: { a: 1, b: 2 } }, { 'idempotency-key': 'order' });
    const again = await post({ metadata: { b: 2, a: 1 }, input: 'x' }, { 'idempotency-key': 'order' });
    expect([again.statusCode, again.json().id, again.headers.location]).toEqual([200, first.json().id, first.headers.location]);
    const other = await post({ input: 'x', metadata: { a: 1, b: 3 } }, { 'idempotency-key': 'order' });
    expect([other.statusCode, other.json().code]).toEqual([409, 'idempotency_conflict']);
  });

  test('belongs to its tenant', async () => {
    const mine = await post({ input: 'x' }, { 'idempotency-key': 'shared' });
    const theirs = await post({ input: 'y' }, { 'idempotency-key': 'shared' }, keysOf.beta);
    expect(theirs.statusCode).toBe(202);
    expect(theirs.json().id).not.toBe(mine.json().id);
  });

  test('is 1 to 255 printable characters', async () => {
    expect((await post({ input: 'x' }, { 'idempotency-key': 'k'.repeat(255) })).statusCode).toBe(202);
    for (const key of ['', 'k'.repeat(256), 'tab\there', 'é']) {
      const answer = await post({ input: 'x' }, { 'idempotency-key': key });
      expect([answer.statusCode, answer.json().errors[0].path]).toEqual([422, 'idempotency-key']);
    }
  });

  test('whose first request died before it created the run is completed by the next', async () => {
    let die = true;
    const dying = createTestApi({ store: (store) => ({ ...store, create: (run) => (die ? Promise.reject(new Error('Connection is closed.')) : store.create(run)) }) });
    const ask = () => dying.app.inject({ method: 'POST', url: '/v1/runs', ...asked(keysOf.alpha, { input: 'x' }, { 'idempotency-key': 'k' }) });
    const first = await ask();
    expect([first.statusCode, first.json().code]).toEqual([503, 'outcome_unknown']);
    die = false;
    expect((await ask()).statusCode).toBe(202);
    expect((await ask()).statusCode).toBe(200);
    expect((await dying.memory.list({ tenant: 'alpha', status: null, agent: null, tag: null, session_id: null, before_id: null, limit: 10 })).run_ids).toHaveLength(1);
    await dying.close();
  });

  test('outlives its run in the store: the archive answers, nothing is created again', async () => {
    let gone = false;
    let createdAgain = false;
    const old = createTestApi({ store: (store) => ({
      ...store,
      read: (run_id) => (gone ? Promise.resolve(null) : store.read(run_id)),
      create: (run) => {
        createdAgain = gone;
        return gone ? Promise.resolve({ type: 'created' as const, behind: null }) : store.create(run);
      },
    }) });
    const ask = () => old.app.inject({ method: 'POST', url: '/v1/runs', ...asked(keysOf.alpha, { input: 'x' }, { 'idempotency-key': 'k' }) });
    const { id } = (await ask()).json();
    await old.work(id, [...begins, ...ends]);
    await old.archiveRun(id);
    gone = true;
    const again = await ask();
    expect([again.statusCode, again.json().id, again.json().status, createdAgain]).toEqual([200, id, 'completed', false]);
    expect(again.json()).not.toHaveProperty('tenant');
    await old.close();
  });
});

test('two runs without a key are two runs', async () => {
  expect(await createdRun(api)).not.toBe(await createdRun(api));
});
