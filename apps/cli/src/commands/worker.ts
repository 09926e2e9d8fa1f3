/**
 * `treadle worker`: one worker process, configured by the environment alone. Serves its metrics, drains on SIGTERM.
 */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { hostname } from 'node:os';
import { createLogger } from '@treadle/telemetry';
import { startWorker, UnfitRedis, type RunningWorker } from '@treadle/worker';
import { CommandFailed, exitCodes, loadSetup } from '../setup.ts';
import { untilStopped } from './until-stopped.ts';

export async function workerCommand(): Promise<number> {
  const { settings, config, secrets } = await loadSetup(process.env);
  if (settings.redisUrl === null) throw new CommandFailed(exitCodes.badUsage, ['REDIS_URL: expected to be set (treadle up starts a Redis of its own)']);
  const name = process.env.TREADLE_PROCESS ?? 'worker';
  const logger = createLogger({ level: settings.logLevel, name, secrets });
  const worker = await startWorker({
    settings, config, logger, redisUrl: settings.redisUrl, archiveDir: settings.archiveDir ?? '.treadle/archive',
    name: `${hostname()}-${process.pid}`, poisonLimit: settings.poisonLimit,
  }).catch((error: unknown) => {
    if (error instanceof UnfitRedis) throw new CommandFailed(exitCodes.badUsage, [`REDIS_URL: ${error.message}`]);
    throw error;
  });
  const { server, url } = await serveMetrics(worker, { host: settings.host, port: settings.metricsPort });
  process.send?.({ url });
  await untilStopped();
  logger.info('draining');
  await worker.drain(settings.drainTimeoutMs);
  server.close();
  return exitCodes.done;
}

async function serveMetrics(worker: RunningWorker, at: { readonly host: string; readonly port: number }): Promise<{ server: Server; url: string }> {
  const server = createServer((request, response) => {
    void answer(worker, request.url ?? '/').then(({ status, type, body }) => { response.writeHead(status, { 'content-type': type }).end(body); });
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(at.port, at.host, resolve);
  });
  return { server, url: `http://${at.host}:${(server.address() as AddressInfo).port}` };
}

async function answer(worker: RunningWorker, path: string): Promise<{ status: number; type: string; body: string }> {
  const json = 'application/json';
  if (path === '/healthz') return { status: 200, type: json, body: '{"ok":true}' };
  if (path === '/readyz') {
    const problems = await worker.problems();
    return { status: problems.length === 0 ? 200 : 503, type: json, body: JSON.stringify({ ok: problems.length === 0, problems }) };
  }
  if (path === '/metrics') return { status: 200, type: worker.metrics.registry.contentType, body: await worker.metrics.registry.metrics() };
  return { status: 404, type: json, body: '{}' };
}
