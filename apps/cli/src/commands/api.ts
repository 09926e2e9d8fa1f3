/** `treadle api`: one API process, configured by the environment alone. */
import { hostname } from 'node:os';
import { startApi, UnfitApi, type ApiSetup } from '@treadle/api';
import { createLogger, startTracing, valueRedactor } from '@treadle/telemetry';
import { CommandFailed, exitCodes, flushMs, loadSetup, packageVersion, portTaken } from '../setup.ts';
import { tellParent, untilStopped } from './until-stopped.ts';

/** `decorate` is for tests, which start this very process with something between it and its store. */
export async function apiCommand(_args: readonly string[] = [], decorate?: ApiSetup['decorate']): Promise<number> {
  const { settings, config, secrets } = await loadSetup(process.env);
  if (settings.redisUrl === null) throw new CommandFailed(exitCodes.badUsage, ['REDIS_URL: expected to be set (treadle up starts a Redis of its own)']);
  const stopped = untilStopped();
  const logger = createLogger({ level: settings.logLevel, name: process.env.TREADLE_PROCESS ?? 'api', secrets });
  const tracing = await startTracing({
    settings, role: 'api', name: `${hostname()}-${process.pid}`, version: await packageVersion(), mask: valueRedactor(secrets), onWarning: (problem) => { logger.warn({ problem }, 'traces cannot be sent; they are dropped, and requests are served'); },
  });
  const starting = startApi({ settings, config, logger, redisUrl: settings.redisUrl, archiveDir: settings.archiveDir ?? '.treadle/archive', ...(tracing === null ? {} : { tracer: tracing.tracer }), ...(decorate === undefined ? {} : { decorate }) }).catch((error: unknown) => {
    if (error instanceof UnfitApi) throw new CommandFailed(exitCodes.badUsage, error.message.split('\n'));
    throw portTaken('PORT', settings.port, error as NodeJS.ErrnoException);
  });
  const api = await Promise.race([starting, stopped.then(() => null)]);
  if (api === null) return exitCodes.done;
  tellParent({ url: api.url });
  await stopped;
  await api.close();
  await tracing?.close(flushMs(settings.drainTimeoutMs));
  return exitCodes.done;
}
