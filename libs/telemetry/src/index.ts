export { longBuckets, metricDefinitions, shortBuckets, type MetricDefinition } from './definitions.ts';
export { createLogger, type LoggerOptions, type LogLevel } from './logger.ts';
export { createMetrics, watchEventLoop, type Metrics } from './metrics.ts';
export { observeChains, observeTrial } from './observe-chains.ts';
export { observeEvent, type EventContext } from './observe-event.ts';
export { redactKeys, valueRedactor } from './redact.ts';
export type { Logger } from 'pino';
