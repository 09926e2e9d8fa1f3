/** Kind 8: every byte and character that a model or a tool may send. */
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { raw, reply, text, tool } from '@treadle/testkit';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { until } from '../e2e/processes.ts';
import { finish, ofType, play, type Played } from './general-checks.ts';
import { startSite, type Site } from './http-site.ts';
import { oddText } from './odd-text.ts';
import { startCases, type Cases, type LiveRun, type Script } from './stage.ts';
import { frames, wires, type Wire } from './speech.ts';
import { callsOf, resultsOf } from './wire.ts';

const cap = 1000;
const raw3 = Buffer.from('00fffe', 'hex');
const octets = { 'content-type': 'application/octet-stream' };
let cases: Cases;
let site: Site;
beforeAll(async () => {
  site = await startSite(({ url, body }) => url === '/raw' ? { headers: octets, body: raw3 } : url === '/text' ? { headers: { 'content-type': 'text/plain' }, body: raw3 } : { body: `got ${body}` });
  cases = await startCases({
    models: { tiny: { context_window: 2048, max_output_tokens: 256 } }, chains: { tiny: ['tiny'] },
    functions: true,
    config: {
      egress: { allow: [site.origin] },
      http_tools: {
        raw: { url: `${site.origin}/raw` }, raw_text: { url: `${site.origin}/text` },
        echo: { method: 'POST', url: `${site.origin}/echo`, input_schema: { type: 'object', properties: { v: { type: 'string' } }, required: ['v'] } },
      },
    },
    agents: {
      mixed: { tools: ['raw', 'raw_text', 'echo', 'nul_text', 'nul_throw', 'raw_bytes', 'utf16_bytes'] }, capped: { limits: { max_observation_bytes: cap } }, tiny: { chain: 'tiny', tools: ['t/say'] } },
  });
  await cases.worker();
});
afterAll(async () => {
  await cases.stop();
  await site.stop();
});

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
    const played = await play(cases, `C41 ${offset}`, [reply({ calls: values.map((value, index) => say(`c${index}`, value)) }), text('ok')], { agent: 'capped', wire: wires[offset % wires.length]! });
    expect(played.run.status).toBe('completed');
    for (const { content } of resultsOf(played.requests[1])) expect(Buffer.byteLength(content)).toBeLessThanOrEqual(cap);
    expect(ofType(played.events, 'tool_result').every((event) => (event.truncated_bytes ?? 0) > 0)).toBe(true);
    await expectWhole(played, false);
  });

  test.each(wires)('C42: in a result becomes U+FFFD before it is stored, and %s takes it', async (wire) => {
    const played = await play(cases, `C42 ${wire}`, [reply({ calls: [say('c1', 'Hello \ud800 world')] }), text('ok')], { wire });
    expect(played.run.status).toBe('completed');
    expect(resultsOf(played.requests[1])).toEqual([{ id: 'c1', content: 'Hello \ufffd world' }]);
    expect(ofType(played.events, 'tool_result')[0]!.content).toBe('Hello \ufffd world');
    await expectWhole(played, true);
  });

  test.each(wires)('C42: does not stop compaction: %s', async (wire) => {
    const script: Script = (_, count) => count < 8 ? reply({ calls: [say(`c${count}`, `${count} \udc00 ${'\ud800x'.repeat(300)}`)] }) : text('ok');
    const played = await play(cases, `C42 compaction ${wire}`, script, { agent: 'tiny', wire });
    expect(played.run).toMatchObject({ status: 'completed', answer: 'ok' });
    expect(ofType(played.events, 'compaction').length).toBeGreaterThan(0);
    await expectWhole(played, true);
  });
});

// At every byte of every wire: `stream-integrity.test.ts` of the models. Here, that the whole way to log and next request bears it.
describe('cuts', () => {
  const words = '현재 🌍 ok';
  const args = { city: 'Orléans 🌍' };
  const bodyOf = (wire: Wire, end = '\n'): Buffer => Buffer.from(frames(wire, [{ text: words }, { id: 'c1', name: 't__weather', args }]).join('').replaceAll('\n', end));

  async function expectSame(live: LiveRun): Promise<void> {
    const { run, requests, events } = await finish(cases, live, 60_000);
    expect(run, live.label).toMatchObject({ status: 'completed', answer: 'done', tool_calls: 1 });
    expect(ofType(events, 'assistant_text').find((event) => event.is_final)!.content, live.label).toBe(words);
    expect(callsOf(requests[1]), live.label).toEqual([{ id: 'c1', name: 't__weather', args }]);
    expect(requests, live.label).toHaveLength(2);
  }

  async function expectSameCutAt(wire: Wire, offsets: readonly (number | 'every_byte')[], end?: string): Promise<void> {
    const live = await Promise.all(offsets.map((offset) => cases.begin(`C43 ${wire} ${JSON.stringify(end ?? '')} ${offset}`,
      [raw([bodyOf(wire, end)], { cutAt: offset === 'every_byte' ? offset : [offset] }), text('done')], { wire })));
    for (const each of live) await expectSame(each);
  }

  test.each(wires)('C43: on %s inside any character, and here and there, change nothing', async (wire) => {
    const bytes = bodyOf(wire);
    const inside = [...bytes.keys()].filter((at) => (bytes[at]! & 0xc0) === 0x80);
    expect(inside.length).toBeGreaterThan(10);
    const elsewhere = Array.from({ length: 20 }, (_, index) => 1 + Math.floor(index * (bytes.length - 1) / 20));
    await expectSameCutAt(wire, [...new Set([...inside, ...elsewhere]), 'every_byte']);
  }, 60_000);

  test.each(wires)('C43: on %s between CR and LF change nothing either', async (wire) => {
    const bytes = bodyOf(wire, '\r\n');
    const ends = [...bytes.keys()].filter((at) => bytes[at] === 13);
    expect(ends.length).toBeGreaterThan(2);
    await expectSameCutAt(wire, [...ends.map((at) => at + 1), 'every_byte'], '\r\n');
  }, 60_000);
});

describe.concurrent('bytes that are no text', () => {
  test.each(wires)('C44: NUL in a result and in arguments is kept, streamed, archived and replayed to %s as it is', async (wire) => {
    const played = await play(cases, `C44 ${wire}`, [reply({ calls: [say('c1', 'a\u0000b'), { id: 'c2', name: 't__weather', args: { city: 'x\u0000y' } }] }), text('o\u0000k')], { wire });
    expect(played.run).toMatchObject({ status: 'completed', answer: 'o\u0000k' });
    expect(resultsOf(played.requests[1])).toEqual([{ id: 'c1', content: 'a\u0000b' }, { id: 'c2', content: 'It rains in x\u0000y.' }]);
    expect(played.live.starts('weather')[0]!.input).toEqual({ city: 'x\u0000y' });
    expect(ofType(played.events, 'tool_use')[1]!.tool_input).toEqual({ city: 'x\u0000y' });
    await expectWhole(played, false);
  });

  test.each(wires)('C44: raw bytes of an HTTP tool and of a function are named to %s and kept whole; NUL goes through functions and HTTP arguments', async (wire) => {
    const sha = createHash('sha256').update(raw3).digest('hex');
    const kept = (type: string) => `[not text: ${type}, 3 bytes, kept as blob ${sha}]`;
    const calls = ['raw', 'raw_text', 'nul_text', 'nul_throw', 'raw_bytes', 'utf16_bytes'].map((name) => ({ id: name, name, args: {} }));
    const played = await play(cases, `C44 tools ${wire}`, [reply({ calls: [...calls, { id: 'echo', name: 'echo', args: { v: 'x\u0000y' } }] }), text('ok')], { agent: 'mixed', wire });
    expect(played.run).toMatchObject({ status: 'completed', answer: 'ok' });
    const flagged = 'ERROR: bad\u0000luck \ufffd';
    expect(resultsOf(played.requests[1])).toEqual([
      { id: 'raw', content: kept('application/octet-stream') }, { id: 'raw_text', content: `\u0000\ufffd\ufffd\n${kept('text/plain')}` }, { id: 'nul_text', content: 'a\u0000b' },
      { id: 'nul_throw', content: flagged }, { id: 'raw_bytes', content: kept('application/octet-stream') }, { id: 'utf16_bytes', content: 'hé🌍' }, { id: 'echo', content: 'got {"v":"x\\u0000y"}' }]);
    const results = ofType(played.events, 'tool_result');
    expect(Object.fromEntries(results.flatMap(({ tool_use_id, attachments }) => attachments === undefined ? [] : [[tool_use_id, attachments]]))).toEqual({
      raw: [{ blob: sha, media_type: 'application/octet-stream', bytes: 3 }], raw_text: [{ blob: sha, media_type: 'text/plain', bytes: 3 }],
      raw_bytes: [{ blob: sha, media_type: 'application/octet-stream', bytes: 3 }] });
    expect(readFileSync(join(cases.stage.env['ARCHIVE_DIR']!, 'runs', played.run.id, 'blobs', sha))).toEqual(raw3);
    await expectWhole(played, true);
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
      reply({ calls: seeds(at).map((seed) => ({ id: `s${seed}`, name: 't__odd', args: { seed } })) }), text('ok')], { wire: wires[at % wires.length]! })));
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
