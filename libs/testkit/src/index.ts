export { createMemoryRunStore, type MemoryJob, type MemoryRunStore, type Protections } from './doubles/run-store.ts';
export { agentLimits, testModel, testSpec, testTool } from './builders/agent.ts';
