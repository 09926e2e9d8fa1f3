/** Errors as clients see them: RFC 9457, with a stable code. Nothing else ever leaves the API as an error. */

/** Every code there is (contract, section 4), with the title that goes with it. */
export const problemTitles = {
  invalid_request: 'The request is not valid',
  invalid_json: 'The body is not valid JSON',
  body_too_large: 'The body is too large',
  unsupported_media_type: 'The content type is not supported',
  unauthorized: 'A valid API key is needed',
  forbidden: 'The API key does not allow this',
  not_found: 'There is no such thing',
  agent_not_found: 'There is no such agent',
  run_deleted: 'The run was deleted',
  idempotency_conflict: 'The idempotency key belongs to another request',
  session_busy: 'The session is busy',
  invalid_state: 'The run can no longer take this',
  already_decided: 'This was decided before',
  limit_above_maximum: 'A limit is above the maximum of the agent',
  not_supported: 'This is not supported yet',
  rate_limited: 'Too many requests',
  quota_exceeded: 'A quota is used up',
  unavailable: 'A service that is needed is away',
  outcome_unknown: 'It is not known whether this happened',
  internal: 'Something went wrong on our side',
} as const;

export type ProblemCode = keyof typeof problemTitles;

/** One fault of a request. `path` is dotted, and empty for the whole. */
export interface FieldProblem { readonly path: string; readonly problem: string }

export interface ProblemOptions {
  readonly status: number;
  readonly code: ProblemCode;
  /** A sentence for people; no secrets, no stack, nothing of another tenant. */
  readonly detail: string;
  readonly errors?: readonly FieldProblem[];
  readonly headers?: Readonly<Record<string, string>>;
  /** For the log alone. */
  readonly cause?: unknown;
}

/** Thrown by handlers; answered by the error handler. */
export class Problem extends Error {
  readonly statusCode: number;
  readonly code: ProblemCode;
  readonly errors: readonly FieldProblem[];
  readonly headers: Readonly<Record<string, string>>;

  constructor(options: ProblemOptions) {
    super(options.detail, options.cause === undefined ? {} : { cause: options.cause });
    this.name = 'Problem';
    this.statusCode = options.status;
    this.code = options.code;
    this.errors = options.errors ?? [];
    this.headers = options.headers ?? {};
  }

  /** What goes over the wire. */
  body(): Readonly<Record<string, unknown>> {
    return {
      type: `urn:treadle:problem:${this.code}`, title: problemTitles[this.code], status: this.statusCode, detail: this.message, code: this.code,
      ...(this.errors.length === 0 ? {} : { errors: this.errors }),
    };
  }
}

export const problemType = 'application/problem+json';

/** The same for what never was, what belongs to somebody else, and what is not even an id. */
export function notFound(): Problem {
  return new Problem({ status: 404, code: 'not_found', detail: 'Nothing is here, or it is not yours.' });
}

/** 422, with one line per fault. */
export function invalidRequest(errors: readonly FieldProblem[], detail = summary(errors)): Problem {
  return new Problem({ status: 422, code: 'invalid_request', detail, errors });
}

/** 422: fields of a later release, never accepted and ignored. */
export function fieldsNotSupported(paths: readonly string[]): Problem {
  const errors = paths.map((path) => ({ path, problem: 'not supported yet' }));
  return new Problem({ status: 422, code: 'not_supported', detail: summary(errors), errors });
}

/** 503: it has not happened and will not. */
export function unavailable(detail: string): Problem {
  return new Problem({ status: 503, code: 'unavailable', detail, headers: { 'retry-after': '2' } });
}

/** 503: the command had been sent, and its answer is missing. */
export function outcomeUnknown(detail: string, cause: unknown): Problem {
  return new Problem({ status: 503, code: 'outcome_unknown', detail, cause, headers: { 'retry-after': '2' } });
}

function summary(errors: readonly FieldProblem[]): string {
  const shown = errors.slice(0, 3).map(({ path, problem }) => (path === '' ? problem : `${path}: ${problem}`)).join('; ');
  return errors.length > 3 ? `${shown}; and ${errors.length - 3} more` : shown;
}
