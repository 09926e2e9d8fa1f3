export { apiCommand } from './commands/api.ts';
export { workerCommand } from './commands/worker.ts';
