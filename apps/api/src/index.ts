export { createKeyTable, loadKeys, mayUse, scopes, type ApiKey, type KeysOutcome, type KeyTable, type Principal, type Scope } from './auth/keys.ts';
export type { AgentCatalogue, ApiDeps, ApiLogger, ApiOptions, Health, OfferedAgent } from './dependencies.ts';
export { Problem, problemTitles, type FieldProblem, type ProblemCode } from './problem.ts';
export type { ApiInstance } from './server/api-types.ts';
export { createApiServer } from './server.ts';
export { guardedArchive, guardedStore, type GuardOptions } from './store/guarded-store.ts';
export { ArchiveUnavailable, isSent, StoreUnavailable, storeUnavailable } from './store/unavailable.ts';
export { startApi, UnfitApi, type ApiSetup, type RunningApi } from './start-api.ts';
