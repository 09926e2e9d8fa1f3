/** `treadle api`: one API process, configured by the environment alone. */
import { startApi, UnfitApi } from '@treadle/api';
import { createLogger } from '@treadle/telemetry';
import { CommandFailed, exitCodes, loadSetup } from '../setup.ts';
import { untilStopped } from './until-stopped.ts';

export async function apiCommand(): Promise<number> {
  const { settings, config, secrets } = await loadSetup(process.env);
  if (settings.redisUrl === null) throw new CommandFailed(exitCodes.badUsage, ['REDIS_URL: expected to be set (treadle up starts a Redis of its own)']);
  const logger = createLogger({ level: settings.logLevel, name: process.env.TREADLE_PROCESS ?? 'api', secrets });
  const api = await startApi({ settings, config, logger, redisUrl: settings.redisUrl, archiveDir: settings.archiveDir ?? '.treadle/archive' }).catch((error: unknown) => {
    if (error instanceof UnfitApi) throw new CommandFailed(exitCodes.badUsage, error.message.split('\n'));
    throw error;
  });
  process.send?.({ url: api.url });
  await untilStopped();
  await api.close();
  return exitCodes.done;
}
