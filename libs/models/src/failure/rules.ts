/**
 * What the vendors' codes, texts and statuses mean, for all wires. Codes are exact. Of the texts the first that fits counts, so
 * their order is part of the rules:
 *
 *   parameters before overflow (`max_tokens` stands in both) · overload before rate (an overloaded server must not cost a
 *   credential) · billing before 401 and 403 (a key's limit comes as 403) · images and history before overflow (repair is
 *   cheaper than compaction) · overflow before models (its texts name the model).
 */
import type { ErrorType } from '@treadle/core';

/** Means one thing wherever it stands. `rate_limit_exceeded` is none of these: it also comes with requests that can never fit. */
export const exactCodes: Readonly<Record<string, ErrorType>> = {
  context_length_exceeded: 'context_overflow', exceed_context_size_error: 'context_overflow', model_context_window_exceeded: 'context_overflow',
  insufficient_quota: 'billing_exhausted', billing_hard_limit_reached: 'billing_exhausted', billing_limit_user_error: 'billing_exhausted',
  billing_error: 'billing_exhausted', enforced_spend_limit_reached: 'billing_exhausted', contract_spend_limit_reached: 'billing_exhausted',
  linked_organization_spend_limit_reached: 'billing_exhausted', openrouter_credits: 'billing_exhausted', openrouter_key_limit: 'billing_exhausted',
  openrouter_in_flight_budget: 'quota_window', ramp_limit_exceeded: 'rate_limited',
  invalid_api_key: 'auth_invalid', authentication_error: 'auth_invalid',
  organization_on_hold: 'access_denied', unsupported_country_region_territory: 'access_denied',
  model_not_found: 'model_not_found', deploymentnotfound: 'model_not_found',
  image_too_large: 'image_too_large', image_dimensions_too_large: 'image_too_large',
  image_parse_error: 'feature_unsupported', invalid_image: 'feature_unsupported', invalid_image_format: 'feature_unsupported', invalid_image_url: 'feature_unsupported',
  unsupported_parameter: 'feature_unsupported', unknown_parameter: 'feature_unsupported', not_supported_error: 'feature_unsupported',
  invalid_encrypted_content: 'history_invalid',
  content_filter: 'content_blocked', content_policy_violation: 'content_blocked', invalid_prompt: 'content_blocked', responsibleaipolicyviolation: 'content_blocked',
  slow_down: 'overloaded', overloaded_error: 'overloaded', service_unavailable_error: 'overloaded', unavailable_error: 'overloaded', 1305: 'overloaded',
  tool_use_failed: 'tool_call_malformed', string_above_max_length: 'invalid_request',
  request_too_large: 'payload_too_large', request_body_too_large_after_decoding: 'payload_too_large',
};

/**
 * The status that a kind of error goes with: an error in the middle of a stream has none of its own. `api_error` and `server_error` say
 * nothing beyond that there is one: what its words say counts.
 */
export const statusOfType: Readonly<Record<string, number>> = {
  invalid_request_error: 400, permission_error: 403, not_found_error: 404, rate_limit_error: 429, rate_limit_exceeded: 429,
  rate_limited: 429, too_many_requests: 429, resource_exhausted: 429, unavailable: 503,
  timeout_error: 504,
};

export interface TextRule {
  readonly name: ErrorType;
  readonly text: RegExp;
  /** Only under one of these, or under none; absent: under any. */
  readonly status?: readonly number[];
}

/** What a text says before anybody looks at money, keys or rates. */
export const earlyTexts: readonly TextRule[] = [
  { name: 'tool_call_malformed', text: /error parsing tool call|failed to (call a function|parse tool call)|invalid tool call arguments/i },
  { name: 'content_blocked', text: /\bflagged\b|\bmoderation\b|content[ _](filter|policy|management policy)|usage polic(y|ies)|safety system/i },
  { name: 'history_invalid', text: /must be followed by tool messages|did not have response messages|must be a response to a prec+e+ding message|[`'"]?tool_use[`'"]? ids? (were )?found without|unexpected [`'"]?tool_use_id|tool call id.{0,40}not found|not the same number of function calls|roles must alternate/i },
  { name: 'history_invalid', text: /invalid [`'"]?signature|(thinking|reasoning)[`'"]?( or [`'"]?redacted_thinking[`'"]?)? (blocks?|content).{0,80}(cannot be modified|must be passed back)|expected [`'"]?thinking|encrypted content/i },
  { name: 'history_invalid', text: /text content blocks must|must have non-empty content|content (cannot|must not) be empty|cannot end with trailing whitespace|assistant message prefill|must end with a user message/i },
  { name: 'feature_unsupported', text: /invalid schema for function|(failed to (parse|initialize|compile)|error parsing|unable to generate).{0,30}(grammar|schema)|json schema conversion failed|unsupported.{0,30}schema/i },
  // Far fewer than is usual: taken out one by one they would be refused again and again.
  { name: 'feature_unsupported', text: /(too many|number of) images\b|too much media|(maximum( of)?|at most|more than|only|limit of) \d{1,5} image(s|\(s\))?(?! per)\b/i, status: [400, 413, 422, 500] },
  { name: 'image_too_large', text: /images?.{0,60}(exceeds?|too large|too big)/i },
  { name: 'model_not_found', text: /does not support (chat|generate|completion)/i },
  { name: 'feature_unsupported', text: /does(n't| not) support (tools?|tool use|function|thinking|reasoning|images?|image input|vision|multimodal|insert)|support tool use|(tool (use|calling|choice)|image input|thinking) is not supported|missing data required for image input|unsupported image|could not process image/i },
  { name: 'feature_unsupported', text: /unrecognized request argument|unsupported (parameter|value)|unknown (parameter|field)|extra inputs are not permitted|is not supported with this model/i },
  { name: 'output_cap_invalid', text: /max_(completion_|output_)?tokens.{0,80}(greater|exceed|above|too (large|high|big)|at most|less than or equal|no more than|between|out of range|range of|maximum|<= ?\d|> \d)|(range|maximum value) (of|for) [`'"]?max_(completion_|output_)?tokens/i },
  { name: 'access_denied', text: /data policy/i },
  { name: 'overloaded', text: /server (is )?busy|too busy|maximum pending requests|loading model|model is loading|at capacity|over capacity|overloaded|slow down|no available model provider/i },
];

/** Money that is gone comes back by nobody's waiting. */
export const billingText = /insufficient (balance|credits?|quota|funds)|credit balance|exceeded your current quota|\bbilling\b|payment required|key limit exceeded|spend(ing)? limit|used all available credits|(out of|no|not enough) credits|credits? (are |have been )?(exhausted|depleted|used up)|balance (is )?(too low|insufficient)|monthly.{0,20}usage threshold/i;
export const billingStatuses: readonly number[] = [400, 401, 402, 403, 429];

/** A window of time that is used up, and that it will open again. */
export const windowText = /usage (limits?|cap)|quota|hourly|per[ -](day|week|month)|daily|weekly|monthly|in-flight budget|allowance|\b\d+[ -]?(hour|hr|h|day|week)s?\b[^.\n]{0,20}\b(limit|window|cap)|(session|plan|subscription) (limit|cap)|(hit|reached) (your|the) limit|limit (of|for) your (plan|subscription)|this (week|month)/i;
export const longWindowText = /\bhourly|per[ -](day|week|month)|\b[RT]PD\b|\bdaily|\bweekly|\bmonthly|\b\d+[ -]?(hour|day|week)s? (usage |message )?limit/i;
export const resetText = /try again|wait|resets?\b|renews?\b|retry|regain access|come back|available again/i;
export const windowStatuses: readonly number[] = [400, 402, 403, 429, 503];

/** A prompt that is too long has many words. Those that could also be about a rate or a file stand only where a refusal of a prompt does. */
const lengthStatuses: readonly number[] = [400, 413, 422, 500];
const tooLong: readonly RegExp[] = [
  /\b(prompts?|inputs?|messages?|conversation|history|sequence)( \([^)]{0,60}\))?( is| are| was)?( (too (long|large|big)|longer than|larger than))/i,
  /\b(prompts?|inputs?|conversation|messages)( (length|tokens?|token count|size))?( \([^)]{0,60}\)| of [\d,]{1,15}| [\d,]{1,15})?( tokens?)? (exceeds?|exceeded)\b/i,
  /\btokens?\b[^.\n]{0,60}\b(exceed(s|ed)?|longer than|more than|greater than)\b[^\n]{0,60}\b(max(imum)?|limit|allowed|window|model)\b/i,
  /\bexceed(s|ed)?\b[^.\n]{0,40}\b(max(imum)?|limit|allowed)\b[^.\n]{0,30}\btokens?\b/i,
  /\bmax(imum)? (prompt|input|sequence|model|token) (length|size|limit|count)|max_model_len|\btoken limit\b|range of (input|prompt) length/i,
  /\b(reduce|shorten) (the |your )?((length|size) of (the |your )?)?(messages?|prompt|input|conversation)\b/i,
  /\binputs[`'"]? (tokens )?[^\n]{0,30}must (have|be) (less|at most|fewer|<)/i,
  // What is left for the reply, by the server's own sum.
  /max_(completion_|output_)?tokens[^\n]{0,40}got -\d/i,
];

export const lateTexts: readonly TextRule[] = [
  { name: 'rate_limited', text: /tokens?[ -]per[ -](second|minute|min|hour|day)|\bTPM\b|too many tokens,? (please )?(wait|try again|retry|slow)/i, status: [429] },
  { name: 'context_overflow', text: /context (length|size|window|limit)|prompt (is )?too long|input is too long|input length.{0,40}exceeds?|tokens? > \d+ maximum|too many (input )?tokens/i },
  ...tooLong.map((text): TextRule => ({ name: 'context_overflow', text, status: lengthStatuses })),
  { name: 'payload_too_large', text: /\b(request|payload|body|content)( entity| body| content| size)?( is)? too large|\b(request|payload|body|message) size\b[^.\n]{0,40}\b(exceed|limit|maximum)/i, status: lengthStatuses },
  { name: 'model_not_found', text: /\bmodel\b[^\n]{0,200}(not found|does not exist|not available)|not a valid model|no models? loaded|try pulling it first|no such model|no endpoints found for|deployment.{0,60}does not exist/i, status: [400, 404, 422, 500, 503] },
  { name: 'rate_limited', text: /rate limit|too many requests/i },
];

export const statuses: Readonly<Record<number, ErrorType>> = {
  401: 'auth_invalid', 402: 'billing_exhausted', 403: 'access_denied', 408: 'timeout', 409: 'server_error', 413: 'payload_too_large', 425: 'server_error',
  429: 'rate_limited', 451: 'access_denied',
  498: 'overloaded', 499: 'aborted', 503: 'overloaded', 504: 'timeout', 524: 'timeout', 529: 'overloaded',
};

/** By what a reason is known for certain, for the docs. */
export function certainSigns(error_type: ErrorType): { readonly statuses: readonly number[]; readonly codes: readonly string[] } {
  const codes = Object.keys(exactCodes).filter((code) => exactCodes[code] === error_type);
  return { statuses: Object.keys(statuses).map(Number).filter((status) => statuses[status] === error_type), codes: codes.sort() };
}
