export { createCanaryStore, type CanaryStoreOptions } from './canary-store.ts';
export { createKeyDirectory, type KeyDirectoryOptions } from './key-directory.ts';
export { fleetKeys, type FleetKeys } from './keys.ts';
export { createWorkerRegistry, type WorkerRegistryOptions } from './worker-registry.ts';
export { createModelFleet, type FleetLimits, type ModelFleetOptions } from './model-fleet.ts';
