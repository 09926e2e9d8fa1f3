/**
 * `treadle up`: the whole stack in the foreground. Prints its addresses once ready; Ctrl-C drains and stops.
 */
import { parseArgs } from 'node:util';
import { CommandFailed, exitCodes, loadSetup } from '../setup.ts';
import { UnfitFolder } from '../stack/data-folder.ts';
import { startStack, StoppedWhileStarting } from '../stack/stack.ts';
import { untilStopped } from './until-stopped.ts';

export const upUsage = 'treadle up [--workers N] [--port P] [--data DIR] [--config FILE]';

export async function upCommand(args: string[]): Promise<number> {
  const { values } = parseArgs({ args, options: {
    workers: { type: 'string', default: '1' }, port: { type: 'string' }, data: { type: 'string', default: '.treadle' }, config: { type: 'string' },
  } });
  const kills: (() => void)[] = [];
  const stopped = untilStopped(() => { for (const kill of kills) kill(); });
  const { settings, source } = await loadSetup(process.env, { configPath: values.config });
  const workers = wholeNumber('--workers', values.workers, 1, 64);
  const port = values.port === undefined ? settings.port : wholeNumber('--port', values.port, 0, 65_535);
  if (values.data.trim() === '') throw new CommandFailed(exitCodes.badUsage, ['--data: expected a folder']);
  const starting = new AbortController();
  void stopped.then(() => { starting.abort(); });
  const print = (line: string): void => { process.stdout.write(`${line}\n`); };
  const stack = await startStack({
    settings, env: process.env, dataDir: values.data, workers, port, configPath: values.config, signal: starting.signal,
    onSpawn: (kill) => { kills.push(kill); }, onNews: (line) => { process.stderr.write(`treadle: ${line}\n`); },
  }).catch((error: unknown) => {
    if (error instanceof StoppedWhileStarting) return null;
    if (error instanceof UnfitFolder) throw new CommandFailed(exitCodes.badUsage, [`--data: ${error.message}`]);
    throw new CommandFailed(exitCodes.unreachable, [error instanceof Error ? error.message : String(error)]);
  });
  if (stack === null) {
    print('stopped while it was starting');
    return exitCodes.done;
  }
  print(`configuration  ${source}`);
  print(`API            ${stack.apiUrl}  (docs: ${stack.apiUrl}/docs)`);
  for (const [index, worker] of stack.workers.entries()) print(`worker ${index + 1}       ${worker.metricsUrl}/metrics  (pid ${worker.pid ?? '?'})`);
  if (settings.redisUrl === null) print(`Redis          ${stack.redisUrl}  (data in ${values.data})`);
  print('ready; Ctrl-C drains and stops');
  const broken = await Promise.race([stopped.then(() => null), stack.broken]);
  print(broken === null ? 'stopping: turns in flight are finished or handed back; Ctrl-C again ends at once' : `${broken}: stopping`);
  await stack.stop();
  return broken === null ? exitCodes.done : exitCodes.unreachable;
}

/** Throws `CommandFailed` (exit code 2) for anything else. */
export function wholeNumber(name: string, text: string, min: number, max: number): number {
  const value = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN;
  if (value >= min && value <= max) return value;
  throw new CommandFailed(exitCodes.badUsage, [`${name}: expected a whole number from ${min} to ${max}`]);
}
