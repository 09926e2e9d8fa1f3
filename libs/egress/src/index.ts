export { insideOf } from './addresses.ts';
export { createEgress, NotSent, type EgressOptions } from './egress.ts';
