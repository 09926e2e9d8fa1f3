import { createMemoryScheduleStore } from '../doubles/schedule-store.ts';
import { scheduleStoreConformance } from './schedule-store.ts';

scheduleStoreConformance('the double in memory', () => {
  let clockMs = 1_700_000_000_000;
  return { store: createMemoryScheduleStore(() => clockMs), now: async () => clockMs, passTime: async (ms) => { clockMs += ms; } };
});
