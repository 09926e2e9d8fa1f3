/**
 * `treadle worker`: one worker process, configured by the environment alone. Serves its metrics, drains on SIGTERM.
 */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { hostname } from 'node:os';
import { createLogger, startTracing, valueRedactor, type Logger } from '@treadle/telemetry';
import { startWorker, UnfitRedis, type RunningWorker, type WorkerSetup } from '@treadle/worker';
import { CommandFailed, exitCodes, flushMs, loadSetup, packageVersion, portTaken } from '../setup.ts';
import { tellParent, untilStopped } from './until-stopped.ts';

/** `decorate` is for tests, which start this very process with something between it and its ports. */
export async function workerCommand(_args: readonly string[] = [], decorate?: WorkerSetup['decorate']): Promise<number> {
  const { settings, config, secrets } = await loadSetup(process.env);
  if (settings.redisUrl === null) throw new CommandFailed(exitCodes.badUsage, ['REDIS_URL: expected to be set (treadle up starts a Redis of its own)']);
  const name = process.env.TREADLE_PROCESS ?? 'worker';
  // Asked to stop while it starts, it stops as soon as it has started.
  const stopped = untilStopped();
  const logger = createLogger({ level: settings.logLevel, name, secrets });
  keepAlive(logger);
  const self = `${hostname()}-${process.pid}`;
  const tracing = await startTracing({
    settings, role: 'worker', name: self, version: await packageVersion(), mask: valueRedactor(secrets), onWarning: (problem) => { logger.warn({ problem }, 'traces cannot be sent; they are dropped, and runs go on'); },
  });
  // Bound before a job is taken: a worker that cannot be watched does not begin.
  let worker: RunningWorker | null = null;
  const { server, url } = await serveMetrics(() => worker, { host: settings.host, port: settings.metricsPort });
  const starting = startWorker({
    settings, config, logger, secrets, redisUrl: settings.redisUrl, archiveDir: settings.archiveDir ?? '.treadle/archive',
    name: self, poisonLimit: settings.poisonLimit, ...(tracing === null ? {} : { tracer: tracing.tracer }), ...(decorate === undefined ? {} : { decorate }),
  }).catch((error: unknown) => {
    if (error instanceof UnfitRedis) throw new CommandFailed(exitCodes.badUsage, [`REDIS_URL: ${error.message}`]);
    throw error;
  });
  worker = await Promise.race([starting, stopped.then(() => null)]);
  if (worker === null) return exitCodes.done;
  tellParent({ url });
  await stopped;
  logger.info('draining');
  const drainingMs = performance.now();
  await worker.drain(settings.drainTimeoutMs);
  await tracing?.close(flushMs(settings.drainTimeoutMs - (performance.now() - drainingMs)));
  server.close();
  return exitCodes.done;
}

/**
 * Tools are other people's code in this process: a promise that they left behind, or an error on a stream that nobody listens to,
 * must not end everybody's runs. What the turn itself throws never gets here.
 */
function keepAlive(logger: Logger): void {
  process.on('unhandledRejection', (reason) => { logger.error({ err: reason ?? String(reason) }, 'a promise was rejected and nobody was listening'); });
  process.on('uncaughtException', (error: unknown) => { logger.error({ err: error ?? String(error) }, 'an error was thrown outside of any call'); });
}

async function serveMetrics(worker: () => RunningWorker | null, at: { readonly host: string; readonly port: number }): Promise<{ server: Server; url: string }> {
  const server = createServer((request, response) => {
    answer(worker(), request.url ?? '/')
      .catch((error: unknown) => ({ status: 500, type: 'text/plain', body: String(error) }))
      .then(({ status, type, body }) => { response.writeHead(status, { 'content-type': type }).end(body); }, () => undefined);
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => { reject(portTaken('METRICS_PORT', at.port, error)); });
    server.listen(at.port, at.host, resolve);
  });
  return { server, url: `http://${at.host}:${(server.address() as AddressInfo).port}` };
}

async function answer(worker: RunningWorker | null, path: string): Promise<{ status: number; type: string; body: string }> {
  const json = 'application/json';
  if (path === '/healthz') return { status: 200, type: json, body: '{"ok":true}' };
  if (worker === null) return { status: 503, type: json, body: '{"ok":false,"problems":["starting"]}' };
  if (path === '/readyz') {
    const { problems, warnings } = await worker.health();
    const body = JSON.stringify({ ok: problems.length === 0, problems, ...(warnings.length === 0 ? {} : { warnings }) });
    return { status: problems.length === 0 ? 200 : 503, type: json, body };
  }
  if (path === '/metrics') return { status: 200, type: worker.metrics.registry.contentType, body: await worker.metrics.registry.metrics() };
  return { status: 404, type: json, body: '{}' };
}
