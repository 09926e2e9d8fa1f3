export { createCanaryStore } from './canary-store.ts';
