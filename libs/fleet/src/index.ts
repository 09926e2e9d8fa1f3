export { fleetKeys, type FleetKeys } from './keys.ts';
