import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { errorTypes } from '@treadle/core';
import { HttpRefusal } from '../http/refusal.ts';
import { EarlyEnd, StreamedError } from '../http/stream-fault.ts';
import { baseUrlOf, gatewayTo, reasonOf, requestOf, startAnswering, type Called, type Wire } from '../testing.ts';
import { classifyFailure, type FailureContext } from './classify.ts';

interface Sample {
  readonly id: string;
  readonly provider: string;
  readonly stage: 'transport' | 'response' | 'mid-stream';
  readonly status: number | null;
  readonly headers: Record<string, string>;
  readonly body: unknown;
  readonly context?: { readonly window?: number; readonly estPromptTokens?: number; readonly signalAborted?: boolean };
  readonly expected_reason: string;
  readonly expected_detail?: { readonly feature?: string };
  readonly expected_retry_after_ms?: number;
}

/** Errors as they were measured or documented. What becomes of each reason (`expected_flags`) is the core's to say. */
const samples = readFileSync(new URL('error-samples.jsonl', import.meta.url), 'utf8').trim().split('\n').map((line) => JSON.parse(line) as Sample);

let server: Awaited<ReturnType<typeof startAnswering>>;

beforeAll(async () => {
  server = await startAnswering();
});

afterAll(async () => {
  await server.close();
});

const context: FailureContext = { stage: 'connecting', nowMs: 0, promptFillsWindow: () => false };

/** An error as a client throws it, rebuilt from its sample. */
function thrown(body: unknown): Error {
  const { name, message, code, cause } = body as { name: string; message: string; code?: string; cause?: { code?: string; message: string } };
  const inner = cause === undefined ? undefined : Object.assign(new Error(cause.message), cause);
  return Object.assign(new Error(message, { cause: inner }), { name, code });
}

const isThrown = (sample: Sample): boolean => sample.stage === 'transport' || Object.hasOwn(Object(sample.body), 'name');
/** Said of a stream in words: it just ends. */
const isEnd = (sample: Sample): boolean => Object.hasOwn(Object(sample.body), 'ended');

/** Vendors of the wire that most of them imitate are asked over it. */
function wireOf({ provider }: Sample): Wire {
  return provider === 'ollama' || provider === 'anthropic' ? provider : 'openai';
}

/** The bytes of a reply whose last frame the sample is. */
function streamOf(sample: Sample): string {
  if (isEnd(sample)) return `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: 'Half' } }] })}\n\n`;
  const frame = JSON.stringify(sample.body);
  switch (wireOf(sample)) {
    case 'ollama': return `${frame}\n`;
    case 'openai': return `data: ${frame}\n\ndata: [DONE]\n\n`;
    case 'anthropic': return `event: ${(sample.body as { type: string }).type}\ndata: ${frame}\n\nevent: message_stop\ndata: {"type":"message_stop"}\n\n`;
  }
}

async function served(sample: Sample): Promise<Called['outcome']> {
  const wire = wireOf(sample);
  const body = typeof sample.body === 'string' ? sample.body : JSON.stringify(sample.body);
  server.answerWith(sample.stage === 'response' ? { status: sample.status ?? 0, headers: sample.headers, body } : { status: 200, headers: {}, body: streamOf(sample) });
  const model = { ...requestOf().model, provider: wire, context_window: sample.context?.window ?? 32_768, max_output_tokens: 4096 };
  const gateway = gatewayTo(baseUrlOf(wire, server.url));
  const prompt = 'word '.repeat(Math.ceil((sample.context?.estPromptTokens ?? 1) * 4 / 5));
  const caller = new AbortController();
  const onText = (): void => {
    if (sample.context?.signalAborted === true) caller.abort();
  };
  const outcome = await gateway.call({ request: requestOf({ model, messages: [{ role: 'user', content: prompt }] }), signal: caller.signal, onText });
  gateway.close();
  return outcome;
}

describe('each sample of an error', () => {
  it.each(samples.filter(isThrown))('$id is $expected_reason', (sample) => {
    const error = sample.provider === 'ollama' ? new EarlyEnd() : thrown(sample.body);
    expect(classifyFailure(error, context).error_type).toBe(sample.expected_reason);
  });

  it.each(samples.filter((sample) => !isThrown(sample)))('$id ($provider) is $expected_reason', async (sample) => {
    const outcome = await served(sample);
    expect(reasonOf(outcome)).toBe(sample.expected_reason);
    if (sample.expected_retry_after_ms !== undefined) expect(outcome).toMatchObject({ failure: { retry_after_s: sample.expected_retry_after_ms / 1000 } });
  });

  it.each(samples.filter((sample) => sample.expected_detail?.feature === 'images'))('$id: the images can be left out', async (sample) => {
    expect(await served(sample)).toMatchObject({ failure: { feature: 'images' } });
  });

  it.each(samples.filter((sample) => ['tools', 'thinking'].includes(sample.expected_detail?.feature ?? '')))('$id: nothing can be left out', async (sample) => {
    expect(await served(sample)).not.toMatchObject({ failure: { feature: expect.anything() as unknown } });
  });

  it('names every reason there is', () => {
    expect([...new Set(samples.map((sample) => sample.expected_reason))].sort()).toEqual([...errorTypes].sort());
  });
});

function refused(code: number, body: unknown, headers: Record<string, string> = {}) {
  return classifyFailure(new HttpRefusal({ status: code, headers: new Headers(headers) }, typeof body === 'string' ? body : JSON.stringify(body)), context);
}

describe('refusals', () => {
  it.each([
    [400, 'prompt is too long: 33041 tokens > 32000 maximum'],
    [400, "This model's maximum context length is 8192 tokens, however you requested 9000"],
    [400, 'input length 16911 exceeds the maximum allowed input length of 16384 tokens'],
    [400, "Input length (9120) exceeds model's maximum context length (8192)"],
    [500, "input length (9120 tokens) exceeds the model's maximum context length (8192 tokens)"],
    [400, 'Prompt has 33,012 tokens, but the configured context size is 32,768 tokens'],
    [400, 'prompt too long; exceeded max context length by 97 tokens'],
    [400, '{"error":{"code":"context_length_exceeded"}}'],
    [400, 'You passed 9000 input tokens and requested 1000 output tokens. However, the model\'s context length is only 8192 tokens'],
    [400, "input length and `max_tokens` exceed context limit: 201000 + 4096 > 200000, decrease input length or `max_tokens` and try again"],
  ])('of a prompt that is too long are context_overflow: %i %s', (code, body) => {
    expect(refused(code, body).error_type).toBe('context_overflow');
  });

  it.each<[string, number | undefined]>([
    ['maximum context length is 32768, you requested about 35100 (1500 of text input, 832 of tool input, 32768 in the output)', 30_436],
    ['input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease input length or `max_tokens` and try again', 10_000],
    ["'max_tokens' or 'max_completion_tokens' is too large: 32768. This model's maximum context length is 32768 tokens and your request has 1500 input tokens (32768 > 32768 - 1500).", 31_268],
    ['max_tokens: 300000 > 64000, which is the maximum allowed number of output tokens', 64_000],
    ['max_tokens is too large: 200000. This model supports at most 16384 completion tokens, whereas you provided 200000.', 16_384],
    ['max_tokens exceeds what this model can do', undefined],
  ])('of an output limit that leaves no room are output_cap_invalid, with what the provider allows: %s', (body, output_cap) => {
    expect(refused(400, body)).toMatchObject({ error_type: 'output_cap_invalid' });
    expect(refused(400, body).output_cap).toBe(output_cap);
  });

  it.each([
    [413, 'request entity too large', 'payload_too_large'], [402, 'payment required', 'billing_exhausted'], [418, 'teapot', 'invalid_request'],
    [429, '', 'rate_limited'], [429, 'server busy', 'overloaded'], [429, 'usage limit reached, try again in 47 minutes', 'quota_window'],
    [400, '"m" does not support chat', 'model_not_found'], [504, '', 'timeout'], [502, '<html><title>Bad gateway</title></html>', 'server_error'],
    [503, 'llm server loading model', 'overloaded'], [400, 'error parsing tool call: context length', 'tool_call_malformed'],
    [401, 'rate limit', 'auth_invalid'], [400, 'messages: text content blocks must be non-empty', 'history_invalid'],
    [400, 'This model does not support assistant message prefill. The conversation must end with a user message.', 'history_invalid'],
    [400, "Invalid schema for function 'save': unknown type", 'feature_unsupported'], [404, 'No endpoints found matching your data policy', 'access_denied'],
    [400, 'unexpected field', 'invalid_request'], [404, 'No endpoints found for acme/none.', 'model_not_found'],
  ])('%i "%s" is %s', (code, body, expected) => {
    expect(refused(code, body).error_type).toBe(expected);
  });

  it.each([
    [402, { error: { message: 'Insufficient credits', metadata: { limit_source: 'openrouter_credits' } } }, {}, 'billing_exhausted'],
    [402, { error: { message: 'Insufficient credits', metadata: { limit_source: 'openrouter_credits' } } }, { 'retry-after': '60' }, 'quota_window'],
    [402, { error: { message: 'Too many requests in flight for your balance', metadata: { limit_source: 'openrouter_in_flight_budget' } } }, {}, 'quota_window'],
    [402, { error: { message: 'Insufficient Balance', code: 'invalid_request_error' } }, {}, 'billing_exhausted'],
    [429, { error: { message: 'You exceeded your current quota, please check your plan and billing details.' } }, {}, 'billing_exhausted'],
    [429, { error: { message: 'You exceeded your current quota, please check your plan and billing details.' } }, { 'retry-after': '20' }, 'rate_limited'],
    [429, { error: { message: 'Rate limit reached. Please try again in 6s. You can add a payment method at https://platform.openai.com/account/billing.', code: 'rate_limit_exceeded' } }, {}, 'rate_limited'],
    [429, { error: { message: 'Too many tokens per day (TPD)' } }, {}, 'quota_window'],
    [400, { error: { type: 'invalid_request_error', message: 'You have reached your specified API usage limits. You will regain access on 2027-01-01.' } }, {}, 'quota_window'],
    [403, { error: { message: 'forbidden' } }, {}, 'access_denied'],
    [429, { error: { message: 'x', type: 'rate_limit_error', details: { error_code: 'ramp_limit_exceeded' } } }, {}, 'rate_limited'],
  ])('of money, a window or a rate are told apart: %i %j %j is %s', (code, body, headers, expected) => {
    expect(refused(code, body, headers as Record<string, string>).error_type).toBe(expected);
  });

  it('are read where the upstream error is text inside the router\'s', () => {
    const metadata = { provider_name: 'X', raw: JSON.stringify({ error: { message: 'prompt is too long: 5 tokens > 3 maximum', type: 'invalid_request_error' } }) };
    expect(refused(400, { error: { code: 400, message: 'Provider returned error', metadata } })).toMatchObject({ error_type: 'context_overflow', detail: 'HTTP 400: Provider returned error' });
  });

  it('are read in the flat form, as FastAPI puts it, and as text', () => {
    expect(refused(400, { object: 'error', message: "This model's maximum context length is 10 tokens.", type: 'BadRequestError', code: 400 })).toMatchObject({ error_type: 'context_overflow', detail: "HTTP 400: This model's maximum context length is 10 tokens." });
    expect(refused(422, { detail: [{ msg: 'field required', loc: ['body'] }] })).toMatchObject({ error_type: 'invalid_request', detail: 'HTTP 422: field required' });
    expect(refused(400, { error: 'The number of tokens to keep is greater than the context length' }).error_type).toBe('context_overflow');
  });

  it('without a word are of the prompt\'s length only where the prompt fills the window', () => {
    const bare = new HttpRefusal({ status: 400, headers: new Headers() }, '');
    expect(classifyFailure(bare, { ...context, promptFillsWindow: () => true }).error_type).toBe('context_overflow');
    expect(classifyFailure(bare, context).error_type).toBe('invalid_request');
    expect(classifyFailure(new HttpRefusal({ status: 400, headers: new Headers() }, 'unexpected field'), { ...context, promptFillsWindow: () => true }).error_type).toBe('invalid_request');
  });

  it('say what was said, of an HTML page its title, and when to come again', () => {
    expect(refused(429, '{"error":"usage limit reached, try again in 47 minutes"}')).toMatchObject({
      detail: 'HTTP 429: usage limit reached, try again in 47 minutes', retry_after_s: 2820,
    });
    expect(refused(502, '<!DOCTYPE html><html><title>Bad gateway</title>')).toMatchObject({ detail: 'HTTP 502: an HTML page ("Bad gateway")' });
    expect(refused(429, '', { 'retry-after': 'soon' })).toMatchObject({ retry_after_s: null });
  });

  it('of any length and nesting are read in bounded time', () => {
    const started = performance.now();
    refused(400, `{"error":${'{"error":'.repeat(4000)}1${'}'.repeat(4000)}}`);
    refused(400, { error: { message: 'model '.repeat(10_000) } });
    refused(400, { error: { message: 'max_tokens '.repeat(6000) } });
    expect(performance.now() - started).toBeLessThan(1000);
  });
});

describe('errors in the middle of a reply', () => {
  it.each([
    ['{"type":"error","error":{"type":"rate_limit_error","message":"x"}}', 'rate_limited'],
    ['{"type":"error","error":{"type":"api_error","message":"Internal server error"}}', 'server_error'],
    ['{"type":"error","error":{"type":"timeout_error","message":"x"}}', 'timeout'],
    ['{"error":{"code":502,"message":"Provider returned error"}}', 'server_error'],
    ['{"error":{"code":429,"message":"Rate limit exceeded"}}', 'rate_limited'],
    ['{"error":"something"}', 'server_error'],
  ])('have the status that their kind goes with: %s is %s', (frame, expected) => {
    expect(classifyFailure(new StreamedError(frame), { ...context, stage: 'streaming' }).error_type).toBe(expected);
  });
});
