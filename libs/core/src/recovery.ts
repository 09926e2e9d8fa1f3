/**
 * What a failure becomes. One row per reason of the closed set; a reason without a row does not compile.
 * Pure data: `decide` reads it, the docs are made from it.
 */
import type { ErrorType } from './error-type.ts';
import type { StopReason } from './stop-reason.ts';

export const recoverySites = [
  'proactive_compaction', 'prompt_too_long', 'max_output_tokens', 'fallback_model', 'stop_hook', 'image_too_large', 'tool_execution',
] as const;
export type RecoverySite = (typeof recoverySites)[number];

export const recoveryActions = [
  'compact', 'emergency_snip', 'reactive_compact', 'aggressive_snip', 'continue_prompt', 'enlarge_output', 'clamp_output', 'fallback',
  'backoff', 'park', 'rotate_credential', 'extra_turn', 'shrink_image', 'remove_image', 'repair_history', 'drop_feature', 'reask', 'fail',
] as const;
export type RecoveryAction = (typeof recoveryActions)[number];

export interface Recovery {
  /** Tries on the same model before the next one of the chain; 0 = the same body is never sent there again. */
  readonly same_model_retries: number;
  /** Whether another model of the chain may do better. */
  readonly fallback: boolean;
  /** Whether another key of the same model may do better. */
  readonly rotate: boolean;
  /** Whether waiting for the provider's reset mends it, when nothing else does. */
  readonly park: boolean;
  /** What the run ends with when there is nothing left to try. */
  readonly exhausted: StopReason;
}

const transient: Recovery = { same_model_retries: 2, fallback: true, rotate: false, park: false, exhausted: 'max_consecutive_errors' };
const elsewhere: Recovery = { same_model_retries: 0, fallback: true, rotate: false, park: false, exhausted: 'irrecoverable_error' };
const hopeless: Recovery = { same_model_retries: 0, fallback: false, rotate: false, park: false, exhausted: 'irrecoverable_error' };

export const recoveryTable: Readonly<Record<ErrorType, Recovery>> = {
  aborted: hopeless,
  auth_invalid: { ...elsewhere, rotate: true, exhausted: 'model_unavailable' },
  access_denied: { ...elsewhere, exhausted: 'model_unavailable' },
  billing_exhausted: { ...elsewhere, rotate: true, exhausted: 'model_unavailable' },
  quota_window: { ...elsewhere, rotate: true, park: true, exhausted: 'model_unavailable' },
  rate_limited: { ...transient, rotate: true },
  overloaded: transient,
  server_error: transient,
  timeout: transient,
  connect_failed: transient,
  tls_invalid: { ...elsewhere, exhausted: 'model_unavailable' },
  stream_interrupted: transient,
  context_overflow: { ...elsewhere, exhausted: 'context_exhausted' },
  payload_too_large: { ...elsewhere, exhausted: 'context_exhausted' },
  output_cap_invalid: elsewhere,
  output_truncated: elsewhere,
  image_too_large: elsewhere,
  model_not_found: { ...elsewhere, exhausted: 'model_unavailable' },
  feature_unsupported: elsewhere,
  content_blocked: { ...elsewhere, exhausted: 'refused' },
  invalid_request: elsewhere,
  history_invalid: elsewhere,
  tool_call_malformed: transient,
  empty_response: { ...hopeless, exhausted: 'empty_answer' },
  unknown: transient,
};
