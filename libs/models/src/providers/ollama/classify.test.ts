import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { raw, startModelServer, status, type ModelServer } from '@treadle/testkit';
import { HttpRefusal } from '../../http/refusal.ts';
import { callOnce, gatewayTo, reasonOf, requestOf } from '../../testing.ts';
import { classify } from './classify.ts';

interface Sample {
  readonly id: string;
  readonly stage: 'transport' | 'response' | 'mid-stream';
  readonly status: number | null;
  readonly headers: Record<string, string>;
  readonly body: unknown;
  readonly context?: { readonly window?: number };
  readonly expected_reason: string;
}

/** Errors as they were measured or documented; `expected_flags` are for the core's recovery table. */
const samples = readFileSync(new URL('error-samples.jsonl', import.meta.url), 'utf8').trim().split('\n').map((line) => JSON.parse(line) as Sample);

let server: ModelServer;

beforeAll(async () => {
  server = await startModelServer({ dialect: 'ollama', script: [] });
});

afterAll(async () => {
  await server.close();
});

/** An error as a client throws it, rebuilt from its sample. */
function thrown(body: unknown): Error {
  const { name, message, code, cause } = body as { name: string; message: string; code?: string; cause?: { code?: string; message: string } };
  const inner = cause === undefined ? undefined : Object.assign(new Error(cause.message), cause);
  return Object.assign(new Error(message, { cause: inner }), { name, code });
}

function isThrown(sample: Sample): boolean {
  return sample.stage === 'transport' || Object.hasOwn(sample.body as object, 'name');
}

async function served(sample: Sample): Promise<string> {
  server.add(sample.stage === 'response' ? status(sample.status ?? 0, sample.headers, sample.body) : raw([`${JSON.stringify(sample.body)}\n`]));
  const { model } = requestOf();
  const request = requestOf({ model: { ...model, context_window: sample.context?.window ?? 32_768, max_output_tokens: 4096 } });
  const gateway = gatewayTo(server.url);
  const { outcome } = await callOnce(gateway, request);
  gateway.close();
  return reasonOf(outcome);
}

describe('each sample of an error', () => {
  it.each(samples.filter(isThrown))('$id is $expected_reason', (sample) => {
    expect(classify(thrown(sample.body), { stage: 'connecting', nowMs: 0 }).error_type).toBe(sample.expected_reason);
  });

  it.each(samples.filter((sample) => !isThrown(sample)))('$id is $expected_reason', async (sample) => {
    expect(await served(sample)).toBe(sample.expected_reason);
  });
});

describe('refusals', () => {
  const refused = (code: number, body: string, headers: Record<string, string> = {}) =>
    classify(new HttpRefusal({ status: code, headers: new Headers(headers) }, body), { stage: 'connecting', nowMs: 0 });

  it.each([
    [400, 'prompt is too long: 33041 tokens > 32000 maximum'],
    [400, "This model's maximum context length is 8192 tokens, however you requested 9000"],
    [400, 'input length 16911 exceeds the maximum allowed input length of 16384 tokens'],
    [500, "input length (9120 tokens) exceeds the model's maximum context length (8192 tokens)"],
    [400, 'Prompt has 33,012 tokens, but the configured context size is 32,768 tokens'],
    [400, 'prompt too long; exceeded max context length by 97 tokens'],
    [400, '{"error":{"code":"context_length_exceeded"}}'],
  ])('of a prompt that is too long are context_overflow: %i %s', (code, body) => {
    expect(refused(code, body).error_type).toBe('context_overflow');
  });

  it.each([
    [413, 'request entity too large', 'payload_too_large'], [402, 'payment required', 'billing_exhausted'], [418, 'teapot', 'invalid_request'],
    [429, '', 'rate_limited'], [429, 'server busy', 'overloaded'], [429, 'usage limit reached, try again in 47 minutes', 'quota_window'],
    [400, '"m" does not support chat', 'model_not_found'], [504, '', 'timeout'], [502, '<html><title>Bad gateway</title></html>', 'server_error'],
    [503, 'llm server loading model', 'overloaded'], [400, 'error parsing tool call: context length', 'tool_call_malformed'],
    [401, 'rate limit', 'auth_invalid'],
  ])('%i "%s" is %s', (code, body, expected) => {
    expect(refused(code, body).error_type).toBe(expected);
  });

  it('say what was said, of an HTML page its title, and when to come again', () => {
    expect(refused(429, '{"error":"usage limit reached, try again in 47 minutes"}')).toMatchObject({
      detail: 'HTTP 429: usage limit reached, try again in 47 minutes', retry_after_s: 2820,
    });
    expect(refused(502, '<!DOCTYPE html><html><title>Bad gateway</title>')).toMatchObject({ detail: 'HTTP 502: an HTML page ("Bad gateway")' });
    expect(refused(429, '', { 'retry-after': 'soon' })).toMatchObject({ retry_after_s: null });
  });
});
