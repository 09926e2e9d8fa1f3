export { labelMeanings } from './label-meanings.ts';
export { longBuckets, metricDefinitions, shortBuckets, type MetricDefinition, type MetricsRole } from './definitions.ts';
export { createLogger, type LoggerOptions, type LogLevel } from './logger.ts';
export { createMetrics, watchEventLoop, type Metrics } from './metrics.ts';
export { observeChains, observeTrial } from './observe-chains.ts';
export { observeAborted, observeEvent, observeWrite, type EventContext, type Write } from './observe-event.ts';
export { startAtZero } from './start-at-zero.ts';
export { redactKeys, valueRedactor } from './redact.ts';
export type { Logger } from 'pino';
