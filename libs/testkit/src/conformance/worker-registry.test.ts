import { createMemoryWorkerRegistry } from '../doubles/worker-registry.ts';
import { workerRegistryConformance } from './worker-registry.ts';

workerRegistryConformance('in memory', () => {
  const registry = createMemoryWorkerRegistry({ forgetMs: 1000 });
  return { registry, forgetMs: 1000, passTime: (ms) => { registry.passTime(ms); } };
});
