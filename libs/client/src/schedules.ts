/** Schedules, as the API takes and answers them. */
import type { RunRequest } from './client.ts';

/** What a schedule makes each time: a run without a time of its own. */
export type ScheduledRunRequest = Omit<RunRequest, 'run_at' | 'on_busy'> & { readonly on_busy?: 'reject' | 'queue' | 'interrupt' };

export interface ScheduleRequest {
  /** Five fields, or `@daily` and the like. */
  readonly cron: string;
  /** IANA name; default `UTC`. */
  readonly timezone?: string;
  readonly run: ScheduledRunRequest;
  readonly name?: string | null;
  readonly paused?: boolean;
  /** Seconds that a run may be late, 10 to 3600; default 3600. */
  readonly catch_up_s?: number;
}

export interface Schedule {
  readonly id: string;
  readonly name: string | null;
  readonly cron: string;
  readonly timezone: string;
  readonly catch_up_s: number;
  readonly paused: boolean;
  readonly run: ScheduledRunRequest & { readonly agent: string };
  readonly created_at: string;
  /** Null while it is paused. */
  readonly next_run_at: string | null;
  /** The time that the last run was due at. */
  readonly last_run_at: string | null;
  readonly last_run_id: string | null;
  /** Why the last time that was to make a run made none. */
  readonly last_error: { readonly due_at: string; readonly code: string; readonly message: string } | null;
  readonly counts: { readonly fired: number; readonly skipped: number; readonly failed: number };
}

export interface SchedulesOfClient {
  createSchedule(request: ScheduleRequest, options?: { readonly idempotencyKey?: string }): Promise<Schedule>;
  schedules(query?: Readonly<Record<string, string>>): Promise<{ readonly data: readonly Schedule[]; readonly next_cursor: string | null }>;
  schedule(id: string): Promise<Schedule>;
  /** What is named takes the place of what is there. */
  changeSchedule(id: string, change: Partial<ScheduleRequest>): Promise<Schedule>;
  /** It makes no more runs; those that it has made go on. */
  removeSchedule(id: string): Promise<{ readonly id: string; readonly deleted_at: string }>;
}

/** Asks the API, and answers its JSON. */
export type Json = <T>(method: string, path: string, init?: { readonly body?: unknown; readonly headers?: Record<string, string> }) => Promise<T>;

export function schedulesOf(json: Json): SchedulesOfClient {
  const at = (id: string): string => `/v1/schedules/${encodeURIComponent(id)}`;
  return {
    createSchedule: (request, { idempotencyKey } = {}) => json('POST', '/v1/schedules', { body: request, ...(idempotencyKey === undefined ? {} : { headers: { 'idempotency-key': idempotencyKey } }) }),
    schedules: (query = {}) => json('GET', `/v1/schedules?${new URLSearchParams(query).toString()}`),
    schedule: (id) => json('GET', at(id)),
    changeSchedule: (id, change) => json('PATCH', at(id), { body: change }),
    removeSchedule: (id) => json('DELETE', at(id)),
  };
}
