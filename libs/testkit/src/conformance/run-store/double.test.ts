import { createMemoryRunStore } from '../../doubles/run-store.ts';
import { runStoreConformance } from './suite.ts';

runStoreConformance('in memory', () => {
  const store = createMemoryRunStore();
  return {
    store, jobs: () => store.jobs(), loseJob: (job) => { store.removeJob(job); }, passTime: (ms) => { store.passTime(ms); }, otherStore: () => { store.becomeAnother(); },
    graceMs: 10_000, archiveAfterMs: 5000,
  };
});
