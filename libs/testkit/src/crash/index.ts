export { openArmed, type Armed, type Arming } from './armed.ts';
export { apiPoints, crashPoints, type CrashPoint } from './points.ts';
export { crashingDirectory, crashingPorts, type CrashingPorts } from './ports.ts';
