export type { Canary, CanaryOrder, CanaryStatus, ListedChain, ListedModel } from './canary.ts';
export { ApiError, createClient, LogReset, ServerUnreachable, type Breaker, type CancelFilter, type Client, type ClientOptions, type CommandOptions, type Run, type RunChange, type RunRequest, type RunTree } from './client.ts';
export type { ApiKey, KeyRequest, KeyScope } from './keys.ts';
export type { Schedule, ScheduledRunRequest, ScheduleRequest } from './schedules.ts';
export { createSseParser, type SseMessage } from './sse.ts';
export type { DeliveriesRequest, Delivery, DeliveryStatus, Webhook } from './webhooks.ts';
export type { UsageGroup, UsageReport, UsageRequest, UsageSums } from './usage.ts';
