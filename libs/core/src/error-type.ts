/**
 * The closed set of reasons why a model call can fail, or a reply be unusable. The same 25 words stand in events,
 * in the metric label `error_type` and in `run.error`. Classification happens in the provider's adapter.
 */
export const errorTypes = [
  'aborted', 'auth_invalid', 'access_denied', 'billing_exhausted', 'quota_window', 'rate_limited', 'overloaded',
  'server_error', 'timeout', 'connect_failed', 'tls_invalid', 'stream_interrupted', 'context_overflow',
  'payload_too_large', 'output_cap_invalid', 'output_truncated', 'image_too_large', 'model_not_found',
  'feature_unsupported', 'content_blocked', 'invalid_request', 'history_invalid', 'tool_call_malformed',
  'empty_response', 'unknown',
] as const;

export type ErrorType = (typeof errorTypes)[number];

/** What each says, for people. */
export const errorMeanings: Readonly<Record<ErrorType, string>> = {
  aborted: 'The call was called off: by a cancel, a pause, or a worker that shuts down.',
  auth_invalid: 'The key is wrong or no longer valid.',
  access_denied: 'The key is right and may not do this: a permission, a region, a data policy.',
  billing_exhausted: 'The money of the account or the key is used up; waiting does not bring it back.',
  quota_window: 'What may be used in a window of time (an hour, a day) is used up until it opens again.',
  rate_limited: 'Too many requests or tokens for the moment.',
  overloaded: 'The server is busy, or still loading the model.',
  server_error: 'The server failed.',
  timeout: 'Nothing came in time: at the server, on the way, or by the limits set here.',
  connect_failed: 'No connection, or one that broke before the status line.',
  tls_invalid: 'The certificate or the protocol of the connection is wrong.',
  stream_interrupted: 'The reply broke off, or ended without its terminal marker.',
  context_overflow: 'Prompt and reply do not fit the context window.',
  payload_too_large: 'The request has too many bytes.',
  output_cap_invalid: 'The output limit that was asked for is too large; the prompt is not.',
  output_truncated: 'The reply was cut at the output limit, with room left.',
  image_too_large: 'An image is too large, in bytes or pixels.',
  model_not_found: 'There is no such model, or it does not chat.',
  feature_unsupported: 'The model or the server cannot do what was asked for: tools, images, a parameter, a schema.',
  content_blocked: 'A filter or the model itself refused the content.',
  invalid_request: 'The request is wrong in another way; sent again it would be refused again.',
  history_invalid: 'The conversation is not one that the server takes: a call without its result, a signature, an empty text.',
  tool_call_malformed: 'The server could not make a tool call of what the model wrote.',
  empty_response: 'The reply held no text and no tool call.',
  unknown: 'Nothing that is known.',
};
