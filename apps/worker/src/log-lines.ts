/** What a worker's log says of runs: facts an operator looks for, never what a user, a model or a tool said. */
import { traceIdOf, type RunEvent, type RunState } from '@treadle/core';
import type { LeaveReason, StoreFound } from '@treadle/engine';
import type { Logger } from '@treadle/telemetry';

type Logged = Pick<RunState, 'run_id' | 'tenant' | 'traceparent'>;

/** By what a line about a run is found, among those of one run, one tenant, one trace. */
function ofRun({ run_id, tenant, traceparent }: Logged) {
  return { run_id, tenant, ...(traceparent === null ? {} : { trace_id: traceIdOf(traceparent) }) };
}

export function logEvent(logger: Logger, event: RunEvent, { run, resumed }: { readonly run: Logged; readonly resumed: boolean }): void {
  const fields = { ...ofRun(run), turn: event.turn_number, epoch: event.epoch };
  if (event.type === 'turn_start' && event.attempt > 1 && !resumed) logger.info({ ...fields, attempt: event.attempt }, 'turn taken over');
  if (event.type === 'error') logger.warn({ ...fields, error_type: event.error_type, action: event.action, model: event.model, retry_in: event.retry_in }, 'model call failed');
  if (event.type === 'tools_changed' && event.problems.length > 0) logger.warn({ ...fields, problems: event.problems }, 'tools could not be asked for');
  if (event.type === 'run_end') logger.info({ ...fields, status: event.status, stop_reason: event.stop_reason }, 'run ended');
}

const endings: Record<Exclude<LeaveReason, 'done'> | 'threw', string> = {
  fenced: 'the turn was left: somebody else has the run', lease: 'the turn was left: its lease was lost', drain: 'the turn was left: this worker drains',
  unclear: 'the turn was left: the store did not say whether it took a write', threw: 'the turn broke off; it is delivered again',
};

/** `epoch`: of the claim. */
export function logDelivery(logger: Logger, how: LeaveReason | 'threw', { run, epoch }: { readonly run: Logged & Pick<RunState, 'turn_number'>; readonly epoch: number }): void {
  const fields = { ...ofRun(run), turn: run.turn_number, epoch };
  if (how === 'done') logger.debug(fields, 'turn done');
  else logger.warn({ ...fields, how }, endings[how]);
}

/** Redis was started again, or another has taken its place, and it lacks what a run has written. */
export function logOtherStore(logger: Logger, run_id: string, found: StoreFound): void {
  switch (found.type) {
    case 'whole': return;
    case 'written_back': logger.warn({ run_id, from: found.from, to: found.to }, 'Redis had lost the end of a run; it was put back from the archive'); return;
    case 'lost': logger.error({ run_id, problem: found.problem }, 'state_lost: Redis and the archive tell different histories of a run; it ends here'); return;
    case 'archive_away': logger.warn({ run_id, problem: found.problem }, 'Redis has changed, and the archive cannot be asked whether it lacks anything; the run waits');
  }
}
