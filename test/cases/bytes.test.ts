/** Kind 8: every byte and character that a model or a tool may send. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { reply, text, tool } from '@treadle/testkit';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { until } from '../e2e/processes.ts';
import { finish, ofType, play, type Played } from './general-checks.ts';
import { oddText } from './odd-text.ts';
import { startCases, type Cases, type LiveRun, type Script } from './stage.ts';
import { bytesOf, callsOf, doneLine, lines, recut, resultsOf, said } from './wire.ts';

const cap = 1000;
let cases: Cases;
beforeAll(async () => {
  cases = await startCases({
    models: { tiny: { context_window: 2048, max_output_tokens: 256 } }, chains: { tiny: ['tiny'] },
    agents: { capped: { limits: { max_observation_bytes: cap } }, tiny: { chain: 'tiny', tools: ['t/say'] } },
  });
  await cases.worker();
});
afterAll(async () => { await cases.stop(); });

/** Makes the tool return `value`, half characters too: the arguments themselves are plain ASCII. */
const say = (id: string, value: string) => ({ id, name: 't__say', args: { code: ascii(value) } });
const ascii = (value: string): string => JSON.stringify(value).replaceAll(/[^\x20-\x7e]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);

/** The log as the archive has it, raw, once it has all of it. */
async function archived(id: string): Promise<string> {
  await until('all is archived', async () => {
    const run = await cases.stage.client.run(id);
    return run['archived_seq'] === run.last_seq;
  });
  const folder = join(cases.stage.env['ARCHIVE_DIR']!, 'runs', id, 'events');
  return readdirSync(folder).sort().map((file) => readFileSync(join(folder, file), 'utf8')).join('');
}

/** Nowhere half a character, raw or as an escape; and where whole ones were, no U+FFFD either. */
async function expectWhole({ requests, events, run }: Played, replaced: boolean): Promise<void> {
  const log = await archived(run.id);
  expect(log.trim().split('\n').map((line) => JSON.parse(line) as unknown)).toEqual(events);
  expect(requests.every((request) => isWhole(request.body))).toBe(true);
  expect(events.every(isWhole)).toBe(true);
  if (!replaced) expect([log, ...requests.map((request) => request.rawBody)].some((text) => text.includes('\ufffd'))).toBe(false);
}

function isWhole(value: unknown): boolean {
  if (typeof value === 'string') return value.isWellFormed();
  return value === null || typeof value !== 'object' || Object.entries(value).every(([key, item]) => key.isWellFormed() && isWhole(item));
}

describe.concurrent('half a character', () => {
  test.each([0, 1, 2, 3])('C41: is not what a cap leaves of an emoji, %i bytes on', async (offset) => {
    const values = ['a'.repeat(cap - 1 - offset) + '🌍' + 'b'.repeat(100), 'a'.repeat(offset) + '🌍'.repeat(400)];
    const played = await play(cases, `C41 ${offset}`, [reply({ calls: values.map((value, index) => say(`c${index}`, value)) }), text('ok')], { agent: 'capped' });
    expect(played.run.status).toBe('completed');
    for (const { content } of resultsOf(played.requests[1])) expect(Buffer.byteLength(content)).toBeLessThanOrEqual(cap);
    expect(ofType(played.events, 'tool_result').every((event) => (event.truncated_bytes ?? 0) > 0)).toBe(true);
    await expectWhole(played, false);
  });

  test('C42: in a result becomes U+FFFD before it is stored', async () => {
    const played = await play(cases, 'C42', [reply({ calls: [say('c1', 'Hello \ud800 world')] }), text('ok')]);
    expect(played.run.status).toBe('completed');
    expect(resultsOf(played.requests[1])).toEqual([{ id: 'c1', content: 'Hello \ufffd world' }]);
    expect(ofType(played.events, 'tool_result')[0]!.content).toBe('Hello \ufffd world');
    await expectWhole(played, true);
  });

  test('C42: does not stop compaction', async () => {
    const script: Script = (_, count) => count < 8 ? reply({ calls: [say(`c${count}`, `${count} \udc00 ${'\ud800x'.repeat(300)}`)] }) : text('ok');
    const played = await play(cases, 'C42 compaction', script, { agent: 'tiny' });
    expect(played.run).toMatchObject({ status: 'completed', answer: 'ok' });
    expect(ofType(played.events, 'compaction').length).toBeGreaterThan(0);
    await expectWhole(played, true);
  });
});

describe('cuts', () => {
  const words = '현재 🌍 ok';
  const whole = (end = '\n') => lines(
    ...[said({ content: words }), said({ content: '', tool_calls: [{ id: 'c1', function: { name: 't__weather', arguments: { city: 'Orléans 🌍' } } }] }), doneLine].map((line) => `${JSON.stringify(line)}${end}`));

  function begin(label: string, cutAt: readonly number[] | 'every_byte', end?: string): Promise<LiveRun> {
    return cases.begin(label, [recut(whole(end), cutAt), text('done')]);
  }

  async function expectSame(live: LiveRun): Promise<void> {
    const { run, requests, events } = await finish(cases, live, 60_000);
    expect(run, live.label).toMatchObject({ status: 'completed', answer: 'done', tool_calls: 1 });
    expect(ofType(events, 'assistant_text').find((event) => event.is_final)!.content, live.label).toBe(words);
    expect(callsOf(requests[1]), live.label).toEqual([{ id: 'c1', name: 't__weather', args: { city: 'Orléans 🌍' } }]);
    expect(requests, live.label).toHaveLength(2);
  }

  test('C43: at any byte of the wire change nothing', async () => {
    const offsets = Array.from({ length: bytesOf(whole()) - 1 }, (_, index) => index + 1);
    expect(offsets.length).toBeGreaterThan(200);
    const live = await Promise.all([...offsets.map((offset) => begin(`C43 ${offset}`, [offset])), begin('C43 every', 'every_byte')]);
    for (const each of live) await expectSame(each);
  }, 120_000);

  test('C43: between CR and LF change nothing either', async () => {
    const text = whole('\r\n');
    const bytes = Buffer.concat(text.type === 'raw' ? [...text.chunks] : []);
    const ends = [...bytes.keys()].filter((at) => bytes[at] === 13);
    expect(ends).toHaveLength(3);
    const live = await Promise.all(ends.flatMap((at) => [at, at + 1, at + 2].map((offset) => begin(`C43 CRLF ${offset}`, [offset], '\r\n'))));
    for (const each of live) await expectSame(each);
  });
});

describe.concurrent('bytes that are no text', () => {
  test('C44: NUL in a result and in arguments is kept, streamed, archived and replayed as it is', async () => {
    const played = await play(cases, 'C44', [reply({ calls: [say('c1', 'a\u0000b'), { id: 'c2', name: 't__weather', args: { city: 'x\u0000y' } }] }), text('o\u0000k')]);
    expect(played.run).toMatchObject({ status: 'completed', answer: 'o\u0000k' });
    expect(resultsOf(played.requests[1])).toEqual([{ id: 'c1', content: 'a\u0000b' }, { id: 'c2', content: 'It rains in x\u0000y.' }]);
    expect(played.live.starts('weather')[0]!.input).toEqual({ city: 'x\u0000y' });
    expect(ofType(played.events, 'tool_use')[1]!.tool_input).toEqual({ city: 'x\u0000y' });
    await expectWhole(played, false);
  });

  test('C44: a server that writes bytes which are no UTF-8 gets U+FFFD in their place', async () => {
    const hex = Buffer.concat([Buffer.from('a\\u0000'), Buffer.from('fffe80', 'hex'), Buffer.from('b')]).toString('hex');
    const played = await play(cases, 'C44 raw', [tool('c1', 't__bytes', { hex }), text('ok')]);
    expect(played.run.status).toBe('completed');
    expect(resultsOf(played.requests[1])).toEqual([{ id: 'c1', content: 'a\u0000\ufffd\ufffd\ufffdb' }]);
    await expectWhole(played, true);
  });

  test('R34: 300 texts that no tool should return reach model, log, archive and API the same', async () => {
    const runs = 30;
    const each = 10;
    const seeds = (at: number): number[] => Array.from({ length: each }, (_, index) => at * each + index);
    const live = await Promise.all(Array.from({ length: runs }, (_, at) => cases.begin(`R34 ${at}`, [
      reply({ calls: seeds(at).map((seed) => ({ id: `s${seed}`, name: 't__odd', args: { seed } })) }), text('ok')])));
    for (const [at, run] of live.entries()) {
      const played = await finish(cases, run);
      expect(played.run.status).toBe('completed');
      const expected = seeds(at).map((seed) => ({ id: `s${seed}`, content: oddText(seed).toWellFormed() }));
      expect(resultsOf(played.requests[1])).toEqual(expected);
      const logged = new Map(ofType(played.events, 'tool_result').map((event) => [event.tool_use_id, event.content]));
      expect(expected.map(({ id }) => logged.get(id))).toEqual(expected.map(({ content }) => content));
      const { data } = await cases.stage.client.get(`/v1/runs/${played.run.id}/messages`) as { data: { role: string; content?: string }[] };
      expect(data.filter((message) => message.role === 'tool').map((message) => message.content)).toEqual(expected.map(({ content }) => content));
      await expectWhole(played, true);
    }
  }, 60_000);
});
