export { modelFleetConformance, type FleetUnderTest } from './model-fleet/suite.ts';
export { runStoreConformance } from './run-store/suite.ts';
export type { JobUnderTest, RunStoreUnderTest } from './run-store/driver.ts';
