/**
 * Which failure says something about whom. Transport is a matter of the host, capacity and quality of the model, keys of whoever
 * holds them: those are benched on the first word (`bench-times.ts`) and need no meter. What a request is to blame for says nothing.
 */
import type { ErrorType } from '@treadle/core';

export type Scope = 'host' | 'model';

/** Null: no meter counts it. */
export const meteredBy: Readonly<Record<ErrorType, Scope | null>> = {
  timeout: 'host', connect_failed: 'host', tls_invalid: 'host', stream_interrupted: 'host', unknown: 'host',
  overloaded: 'model', server_error: 'model', tool_call_malformed: 'model', empty_response: 'model',
  model_not_found: null, aborted: null, auth_invalid: null, access_denied: null, billing_exhausted: null, quota_window: null, rate_limited: null,
  context_overflow: null, payload_too_large: null, output_cap_invalid: null, output_truncated: null, image_too_large: null,
  feature_unsupported: null, content_blocked: null, invalid_request: null, history_invalid: null,
};

/** Whom one call is about. */
export interface Targets { readonly host: string; readonly model: string }

export function targetsOf(model_name: string, base_url: string): Targets {
  return { host: `host:${URL.parse(base_url)?.host ?? base_url}`, model: `model:${model_name}` };
}

export function breakerId(target: string, error_type: ErrorType): string {
  return `${target}:${error_type}`;
}
