import { createMemoryCanaryStore } from '../doubles/canary-store.ts';
import { canaryStoreConformance } from './canary-store.ts';

canaryStoreConformance('the double', () => createMemoryCanaryStore());
