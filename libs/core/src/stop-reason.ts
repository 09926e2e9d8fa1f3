/**
 * Where a run can be and why it ended. A move between statuses that is not in `allowedMoves` is a bug of ours.
 */

export const runStatuses = ['queued', 'running', 'paused', 'completed', 'expired', 'failed', 'cancelled'] as const;
export type RunStatus = (typeof runStatuses)[number];
export type EndStatus = 'completed' | 'expired' | 'failed' | 'cancelled';

/** Each stop reason belongs to exactly one final status. */
export const statusOfStopReason = {
  answered: 'completed',
  max_turns: 'expired', session_timeout: 'expired', tool_budget: 'expired', token_budget: 'expired', cost_budget: 'expired',
  same_error: 'expired', start_deadline: 'expired', approval_timeout: 'expired',
  empty_answer: 'failed', validation_retries: 'failed', invalid_tool_calls: 'failed', loop_detected: 'failed',
  max_consecutive_errors: 'failed', turn_timeout: 'failed', model_unavailable: 'failed', context_exhausted: 'failed',
  irrecoverable_error: 'failed', refused: 'failed', poisoned: 'failed', infrastructure: 'failed', state_lost: 'failed',
  interrupted: 'cancelled',
} as const satisfies Record<string, EndStatus>;

export type StopReason = keyof typeof statusOfStopReason;

export const stopReasons = Object.keys(statusOfStopReason) as StopReason[];

export const pauseReasons = ['requested', 'approval', 'outcome', 'children', 'input', 'quota', 'models'] as const;
export type PauseReason = (typeof pauseReasons)[number];

const allowedMoves: Record<RunStatus, readonly RunStatus[]> = {
  queued: ['running', 'cancelled', 'expired', 'failed'],
  running: ['paused', 'completed', 'expired', 'failed', 'cancelled'],
  paused: ['running', 'cancelled', 'expired', 'failed'],
  completed: [], expired: [], failed: [], cancelled: [],
};

export function mayMove(from: RunStatus, to: RunStatus): boolean {
  return allowedMoves[from].includes(to);
}

export function isEnded(status: RunStatus): status is EndStatus {
  return allowedMoves[status].length === 0;
}
