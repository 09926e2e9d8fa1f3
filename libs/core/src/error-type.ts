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
