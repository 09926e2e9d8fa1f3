/** One thing said in the words of many servers; and the same words where they say something else. */
import { describe, expect, it } from 'vitest';
import { HttpRefusal } from '../http/refusal.ts';
import { StreamedError } from '../http/stream-fault.ts';
import { classifyFailure, type FailureContext } from './classify.ts';

const context: FailureContext = { stage: 'connecting', nowMs: Date.parse('2026-03-04T05:06:07Z'), promptFillsWindow: () => false };

function refused(status: number, message: string) {
  return classifyFailure(new HttpRefusal({ status, headers: new Headers() }, JSON.stringify({ error: { message, type: 'invalid_request_error' } })), context);
}

describe('C35: a prompt that is too long', () => {
  it.each([
    "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
    'The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).',
    'The input token count exceeds the maximum number of tokens allowed 1048575.',
    'Please reduce the length of the messages or completion.',
    'Input validation error: `inputs` must have less than 1024 tokens. Given: 2000',
    'Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 4090 `inputs` tokens and 100 `max_new_tokens`',
    'Range of input length should be [1, 30720]',
    'The decoder prompt (length 9000) is longer than the maximum model length of 8192.',
    'The engine prompt length 9000 exceeds the max_model_len 8192.',
    'Input prompt (9000 tokens) is too long and exceeds limit of 8192',
    'Your request exceeded model token limit: 131072 (requested: 150000)',
    'Request exceeds the maximum number of tokens for this model',
    'The total tokens of the request exceed the model limit',
    'The number of input tokens 9000 cannot exceed the total token limit 8192',
    'input is longer than the context of the model', 'Token limit exceeded', 'prompt is too large', 'conversation is too long for this model',
    'Prompt exceeds max length', 'Input exceeds maximum allowed length of 8192 tokens', 'max_tokens must be at least 1, got -808.',
    // The prompt fits, and leaves no room for a reply.
    "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens (8150 in the messages, 850 in the completion).",
  ])('is context_overflow: %s', (message) => {
    for (const status of [400, 422, 500]) expect(refused(status, message).error_type).toBe('context_overflow');
    expect(classifyFailure(new StreamedError(JSON.stringify({ error: { message } })), context).error_type).toBe('context_overflow');
  });

  it.each(['request entity too large', 'Request body too large', 'total message size 9000 exceeds limit 8192', 'Payload Too Large'])('in bytes is payload_too_large: %s', (message) => {
    expect(refused(400, message).error_type).toBe('payload_too_large');
  });

  it.each([
    [400, "Invalid 'messages[1].tool_calls[0].id': string too long. Expected a string with maximum length 40, but got a string with length 41 instead.", 'invalid_request'],
    [400, "Invalid 'stop': array too long. Expected an array with maximum length 4.", 'invalid_request'],
    [400, 'unexpected field "prompt"', 'invalid_request'], [400, 'messages: at least one message is required', 'invalid_request'],
    [429, 'Too many tokens, please wait before trying again.', 'rate_limited'], [429, 'Too many tokens per minute', 'rate_limited'],
    [429, 'This request would exceed your rate limit of 30,000 input tokens per minute', 'rate_limited'],
    [429, 'Token limit exceeded', 'rate_limited'], [400, 'The input image is too large', 'image_too_large'],
  ])('is something else than %i "%s", which is %s', (status, message, expected) => {
    expect(refused(status, message).error_type).toBe(expected);
  });
});

describe('C45: more images than a request may have', () => {
  it.each([
    'Too many images in request. Max is 5.', 'Too much media: 0 document pages + 101 images > 100', 'At most 1 image(s) may be provided in one request.', 'A maximum of 20 images is allowed', 'Only 5 images are allowed per request',
    'This request has more than 50 images', 'the number of images exceeds the limit', 'At most 0 image(s) may be provided in one request.', 'Too much media in the request',
  ])('is what the request can do without: %s', (message) => {
    for (const status of [400, 422]) expect(refused(status, message)).toMatchObject({ error_type: 'feature_unsupported', feature: 'images' });
  });

  it('is a rate where it is one', () => {
    expect(refused(429, 'Rate limit reached: at most 5 images per minute').error_type).toBe('rate_limited');
  });
});

describe('C36: an output limit that is too large', () => {
  it.each<[string, number | undefined]>([
    ['Invalid max_tokens value, the valid range of max_tokens is [1, 8192]', 8192], ['Range of max_tokens should be [1, 8192]', 8192],
    ['`max_tokens` must be less than or equal to `4096`, the maximum value for `max_tokens` is less than the `context_window` for this model', 4096],
    ['max_completion_tokens cannot exceed 8,192', 8192], ['max_output_tokens must be between 1 and 8192', 8192], ['The maximum value of max_tokens is 8192', 8192],
    ['max_tokens should be <= 8192', 8192], ['max_tokens must not exceed 2048', 2048], ['max_tokens is out of range', undefined],
    ['`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 1000 `inputs` tokens and 4000 `max_new_tokens`', 3096],
  ])('is output_cap_invalid, with what is allowed: %s', (message, cap) => {
    const failure = refused(400, message);
    expect(failure.error_type).toBe('output_cap_invalid');
    expect(failure.output_cap).toBe(cap);
  });
});

describe('C34: a window of time that is used up', () => {
  it.each<[number, string, number | null]>([
    [429, 'You have hit your limit. Resets 3pm (UTC)', null], [429, '5-hour limit reached, resets in 2 hours', 7200], [429, "You've reached your 5-hour message limit. Try again in 47 minutes.", 2820],
    [429, 'Your allowance for this week is used up; it renews in 3 days', 259_200], [429, 'Usage cap reached. Come back in 3 hours.', 10_800],
    [429, 'plan limit reached, available again at 2026-03-04T06:06:07Z', 3600], [429, 'session limit reached, resets in 47 minutes', 2820], [429, 'tokens per week exhausted; wait 47 minutes', 2820],
    [402, 'usage limit reached, try again in 47 minutes', 2820], [402, 'resets at 2026-03-04 06:06:07 UTC', 3600], [503, 'usage limit reached, try again in 1 week', 604_800],
    [429, 'you reached the limit of your subscription; retry after 47 min', 2820], [500, 'quota exceeded, try again in 47 minutes', 2820],
  ])('is quota_window: %i %s', (status, message, retry_after_s) => {
    expect(refused(status, message)).toMatchObject({ error_type: 'quota_window', retry_after_s });
  });

  it.each(['api_error', 'server_error', undefined])('is told by its words in the middle of a reply, too, where its kind (%s) says nothing', (type) => {
    const frame = (message: string): StreamedError => new StreamedError(JSON.stringify({ type: 'error', error: { type, message } }));
    expect(classifyFailure(frame('usage limit reached, try again in 47 minutes'), context)).toMatchObject({ error_type: 'quota_window', retry_after_s: 2820 });
    expect(classifyFailure(frame('out of credits'), context).error_type).toBe('billing_exhausted');
    expect(classifyFailure(frame('Internal server error'), context).error_type).toBe('server_error');
  });

  it.each<[number, string, string]>([
    [429, 'No credits left', 'billing_exhausted'], [402, 'credits exhausted', 'billing_exhausted'], [400, 'Your account balance is too low', 'billing_exhausted'],
    [429, 'Rate limit reached for requests. Please try again in 6s.', 'rate_limited'], [429, 'request limit reached, try again in 2s', 'rate_limited'],
  ])('is neither money nor a rate: %i "%s" is %s', (status, message, expected) => {
    expect(refused(status, message).error_type).toBe(expected);
  });
});

describe('the words of an error', () => {
  const words = 'prompt is too long: 33041 tokens > 32000 maximum';
  it.each([
    { errors: [{ message: words }] }, [{ error: { code: 400, message: words, status: 'INVALID_ARGUMENT' } }], words, { error: [{ message: words }] }, { error: 'Bad Request', description: words },
    { error: { message: { text: words } } }, { message: [words] }, { fault: { faultstring: words } }, { error: 'invalid_request', error_description: words }, { status: 'error', reason: words },
    { error: { message: 'x', details: [{ reason: words }] } }, { data: { error: { message: words } } }, { title: 'Bad Request', detail: words }, { Message: words }, { error_msg: words },
    [{ error: { code: 'context_length_exceeded' } }], { errors: [{ code: 'context_length_exceeded' }] }, `\ufeff${JSON.stringify({ error: { code: 'context_length_exceeded' } })}`, `<error>${words}</error>`,
  ])('are found wherever they stand: %j', (body) => {
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    expect(classifyFailure(new HttpRefusal({ status: 400, headers: new Headers() }, text), context).error_type).toBe('context_overflow');
  });

  it.each([
    [{ code: '429', message: 'x' }, 'rate_limited'], [{ status: '503', message: 'x' }, 'overloaded'], [{ code: 'rate_limited' }, 'rate_limited'], [{ status: 'RESOURCE_EXHAUSTED' }, 'rate_limited'],
    [{ status: 'UNAVAILABLE' }, 'overloaded'], [{ code: 'too_many_requests' }, 'rate_limited'], [{ code: 'E1234', message: 'x' }, 'server_error'],
  ])('in the middle of a reply have the status that they name: %j is %s', (error, expected) => {
    expect(classifyFailure(new StreamedError(JSON.stringify({ error })), context).error_type).toBe(expected);
  });

  it('are not looked for in what is echoed of the request', () => {
    const body = { detail: [{ msg: 'field required', loc: ['body', 'model'], input: { messages: [{ role: 'user', content: words }] } }] };
    expect(classifyFailure(new HttpRefusal({ status: 422, headers: new Headers() }, JSON.stringify(body)), context).error_type).toBe('invalid_request');
  });
});

it.each([[409, 'server_error'], [425, 'server_error'], [451, 'access_denied'], [520, 'server_error'], [522, 'server_error'], [524, 'timeout'], [526, 'server_error'], [529, 'overloaded']])(
  'a page with the status %i is %s', (status, expected) => {
    expect(classifyFailure(new HttpRefusal({ status, headers: new Headers({ 'content-type': 'application/json' }) }, '<!DOCTYPE html><html><title>Error</title></html>'), context).error_type).toBe(expected);
  });
