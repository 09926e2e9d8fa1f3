/** One reply from one model, or a named failure. */
export { armedChain, bucketOf, createArms, type ArmsOptions } from './canary/arms.ts';
export { alpha as canaryAlpha, judgeTrial } from './canary/judge.ts';
export { certainSigns } from './failure/rules.ts';
export { createModelGateway, type ClosableModelGateway, type ModelGatewayOptions, type PooledConnection } from './gateway.ts';
export type { BreakerOptions, BreakerState, OnTransition } from './health/breakers.ts';
export { createHttpFetch, type HttpFetch, type HttpFetchOptions } from './http/http-fetch.ts';
export type { ModelConnection, Provider, ProviderCall, ProviderFailure, ProviderOutcome, ProviderRegistry, Served } from './provider.ts';
export { builtInProviders } from './providers/registry.ts';
