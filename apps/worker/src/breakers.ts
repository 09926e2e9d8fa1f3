/** What an operator sees of the circuit breakers, as far as this process knows them. */
import type { OpenBreaker } from '@treadle/engine';
import type { OnTransition } from '@treadle/models';
import type { Logger, Metrics } from '@treadle/telemetry';

/** A breaker moves seldom, and when it does, somebody wants to know. */
export function onTransition(logger: Logger, metrics: Metrics): OnTransition {
  return ({ target, error_type }, to) => {
    metrics.breakerTransitions.inc({ breaker: target, error_type, to });
    logger[to === 'open' ? 'warn' : 'info']({ breaker: target, error_type, to }, 'a breaker moved');
  };
}

/** Sets the gauge: 2 open, 1 half open, and 0 for those that have been one of these and are closed again. */
export function breakerGauge(metrics: Metrics): (open: readonly OpenBreaker[], nowMs: number) => void {
  const shown = new Map<string, Pick<OpenBreaker, 'target' | 'error_type'>>();
  return (open, nowMs) => {
    const now = new Map(open.map((breaker) => [breaker.id, breaker]));
    for (const [id, { target, error_type }] of shown) if (!now.has(id)) metrics.breakerState.set({ breaker: target, error_type }, 0);
    for (const [id, { target, error_type, forced, probe_at_ms }] of now) {
      shown.set(id, { target, error_type });
      metrics.breakerState.set({ breaker: target, error_type }, forced || probe_at_ms > nowMs ? 2 : 1);
    }
  };
}
