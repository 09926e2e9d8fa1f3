/**
 * R15: every refusal of the samples, through whole runs over chains of two models that both refuse alike. What it is called is what the
 * sample says; and a body that was refused for what is in it, or for whom it came from, is never sent to the same model again.
 */
import { readFileSync } from 'node:fs';
import { recoveryTable, type ErrorType } from '@treadle/core';
import { status } from '@treadle/testkit';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { until } from '../e2e/processes.ts';
import { finish, ofType } from './general-checks.ts';
import type { Wire } from './speech.ts';
import { startCases, type Cases } from './stage.ts';

interface Sample {
  readonly id: string;
  readonly provider: string;
  readonly stage: string;
  readonly status: number | null;
  readonly headers: Record<string, string>;
  readonly body: unknown;
  readonly context?: { readonly window?: number; readonly estPromptTokens?: number };
  readonly expected_reason: ErrorType;
}

const all = readFileSync(new URL('../../libs/models/src/failure/error-samples.jsonl', import.meta.url), 'utf8').trim().split('\n').map((line) => JSON.parse(line) as Sample);
/** What a server answers, and not what a client throws. */
const samples = all.filter(({ stage, status: code, body }) => stage === 'response' && (code ?? 0) >= 400 && !Object.hasOwn(Object(body), 'name'));
/** Waiting may mend it: the same may be asked again. */
const mendable = ({ expected_reason: reason }: Sample): boolean => recoveryTable[reason].same_model_retries > 0 || recoveryTable[reason].park;
const wireOf = ({ provider }: Sample): Wire => provider === 'ollama' || provider === 'anthropic' ? provider : 'openai';

let cases: Cases;
beforeAll(async () => {
  // A key and models of its own for each, since what is learnt of them holds for every run.
  const model = (sample: Sample) => ({ provider: wireOf(sample), credentials: [`key-${sample.id}`], context_window: sample.context?.window ?? 32_768, max_output_tokens: 4096 });
  cases = await startCases({
    models: Object.fromEntries(samples.flatMap((sample) => [[`${sample.id}-1`, model(sample)], [`${sample.id}-2`, model(sample)]])),
    chains: Object.fromEntries(samples.map(({ id }) => [id, [`${id}-1`, `${id}-2`]])),
    agents: Object.fromEntries(samples.map(({ id }) => [id, { chain: id, tools: ['t/note'] }])),
  });
  await cases.worker();
});
afterAll(async () => { await cases.stop(); });

async function played(sample: Sample): Promise<{ readonly called: unknown; readonly repeated: readonly string[]; readonly sent: number }> {
  const { id, headers, body } = sample;
  const words = 'word '.repeat(Math.ceil((sample.context?.estPromptTokens ?? 1) * 4 / 5));
  const live = await cases.begin(id, () => status(sample.status!, headers, body), { agent: id, input: `Case [[${id}]]. ${words}` });
  await until(`${id} is refused`, () => live.seen.some((event) => event.type === 'error'), 60_000);
  if (mendable(sample)) await cases.stage.client.cancel(live.id).catch(() => undefined);
  const { events, requests } = await finish(cases, live, 60_000);
  const sent = requests.map((request) => JSON.stringify(request.body));
  return { called: ofType(events, 'error')[0]?.error_type, repeated: sent.filter((text, index) => sent.indexOf(text) !== index), sent: sent.length };
}

test('R15: each is called what it is, and no body is sent to a model again that it has refused for good', async () => {
  expect(samples.length).toBeGreaterThan(70);
  const wrong: unknown[] = [];
  const rest = [...samples];
  let deterministic = 0;
  await Promise.all(Array.from({ length: 12 }, async () => {
    for (let sample = rest.shift(); sample !== undefined; sample = rest.shift()) {
      const { called, repeated, sent } = await played(sample);
      if (called !== sample.expected_reason) wrong.push([sample.id, `is called ${String(called)}, not ${sample.expected_reason}`]);
      if (mendable(sample)) continue;
      deterministic++;
      if (repeated.length > 0) wrong.push([sample.id, 'was sent again', repeated]);
      if (sent === 0) wrong.push([sample.id, 'was never sent']);
    }
  }));
  expect(wrong).toEqual([]);
  expect(deterministic).toBeGreaterThan(40);
}, 240_000);
