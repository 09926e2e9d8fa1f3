/** `treadle doctor`: everything a process needs, one line each, with the mend. Exit code 1 if anything is unusable. */
import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { agentSpecOf, configWarnings, mcpServers, modelConnections } from '@treadle/config';
import { openArchive } from '@treadle/event-archive';
import { createModelGateway, type ModelGatewayOptions, type Served } from '@treadle/models';
import { connectRedis, describeRedis, inspectRedis, whenReady, type RedisClient } from '@treadle/run-store';
import { createToolRunner } from '@treadle/tools';
import { toolSources } from '@treadle/worker';
import { findRedisServer } from '../redis-server.ts';
import { exitCodes, loadSetup, type Setup } from '../setup.ts';
import { nearestFolder } from '../stack/data-folder.ts';
import { archiveMend, paceSays, redisSays, type Pace } from './doctor-mends.ts';

export const doctorUsage = 'treadle doctor [--config FILE] [--json]';

interface Finding { readonly check: string; readonly state: 'ok' | 'warning' | 'error'; readonly detail: string; readonly mend?: string }

export async function doctorCommand(args: string[]): Promise<number> {
  const { values } = parseArgs({ args, options: { json: { type: 'boolean', default: false }, config: { type: 'string' } } });
  const setup = await loadSetup(process.env, { configPath: values.config });
  const findings = [
    { check: 'configuration', state: 'ok' as const, detail: setup.source },
    ...await checkRedis(setup), ...await checkArchive(setup), ...await checkModels(setup), ...checkAgents(setup), ...await checkServers(setup),
  ];
  for (const finding of findings) process.stdout.write(`${values.json ? JSON.stringify(finding) : line(finding)}\n`);
  return findings.some((finding) => finding.state === 'error') ? 1 : exitCodes.done;
}

function line({ check, state, detail, mend }: Finding): string {
  return `${state.padEnd(8)}${check.padEnd(22)}${detail}${mend === undefined ? '' : ` → ${mend}`}`;
}

async function checkRedis({ settings }: Setup): Promise<Finding[]> {
  if (settings.redisUrl === null) {
    const binary = findRedisServer();
    return [binary === null
      ? { check: 'Redis', state: 'error', detail: 'REDIS_URL is not set and no Redis server is installed', mend: 'install redis-server or valkey, or set REDIS_URL' }
      : { check: 'Redis', state: 'ok', detail: `treadle up starts ${binary}, every write fsynced` }];
  }
  let last = 'no answer for 5 s';
  const redis = connectRedis(settings.redisUrl, { role: 'api', onError: (error) => { last = reasonOf(error); } });
  try {
    await Promise.race([whenReady(redis), new Promise((_, reject) => {
      // Not of one node or Sentinel, since another may answer; by then `last` says what is wrong.
      redis.once('error', () => { setImmediate(() => { reject(new Error(last)); }); });
      setTimeout(() => { reject(new Error(last)); }, 5000).unref();
    })]);
    const found = await inspectRedis(redis);
    const problems = found.problems.map((each): Finding => ({ check: 'Redis', state: each.severity, detail: each.problem, mend: each.mend }));
    return [{ check: 'Redis', state: 'ok', detail: `${describeRedis(found)}; version ${found.version}, appendonly ${found.appendonly ?? '?'}, appendfsync ${found.appendfsync ?? '?'}, ${found.maxmemory_policy ?? '?'}` }, ...problems, ...paceSays(await paceOf(redis)).map((said): Finding => ({ check: 'Redis', state: 'warning', ...said }))];
  } catch (error) {
    return [{ check: 'Redis', state: 'error', ...redisSays(messageOf(error)) }];
  } finally {
    redis.disconnect();
  }
}

/** The best of a few answers: what is busy now and then is not far away. */
async function paceOf(redis: RedisClient): Promise<Pace> {
  const asked: Pace[] = [];
  for (let asking = 0; asking < 10; asking++) {
    const [sentMs, startMs] = [Date.now(), performance.now()];
    const [seconds, micros] = (await redis.time()).map(Number);
    const roundTripMs = performance.now() - startMs;
    asked.push({ roundTripMs, aheadMs: seconds! * 1000 + micros! / 1000 - (sentMs + roundTripMs / 2) });
  }
  return asked.reduce((best, each) => each.roundTripMs < best.roundTripMs ? each : best);
}

/** A Cluster's client says that it failed, and beside it why. */
function reasonOf(error: Error & { readonly lastNodeError?: Error | null }): string {
  return error.lastNodeError == null ? error.message : `${error.message} ${error.lastNodeError.message}`;
}

async function checkArchive({ settings }: Setup): Promise<Finding[]> {
  const place = (dir: string) => openArchive({
    bucket: settings.s3Bucket, endpoint: settings.s3Endpoint, region: settings.s3Region, access_key_id: settings.s3AccessKeyId,
    secret_access_key: settings.s3SecretAccessKey, prefix: settings.s3Prefix ?? '', dir,
  });
  const dir = settings.archiveDir ?? '.treadle/archive';
  const { archive, description } = place(dir);
  let tried: string | null = null;
  try {
    // In a folder beside what would be written, which goes again: a check must not leave an archive behind.
    if (settings.s3Bucket === null) tried = await mkdtemp(join(nearestFolder(dir), '.treadle-check-'));
    await (tried === null ? archive : place(tried).archive).check();
    return [{ check: 'archive', state: 'ok', detail: `${description}: write, conditional write, read` }];
  } catch (error) {
    return [{ check: 'archive', state: 'error', detail: `${description}: ${messageOf(error)}`, mend: archiveMend(messageOf(error), settings.s3Bucket) }];
  } finally {
    if (tried !== null) await rm(tried, { recursive: true, force: true });
  }
}

async function checkModels({ config, secrets }: Setup): Promise<Finding[]> {
  const connections = Object.entries(modelConnections(config)).map(([name, connection]) => [name, { ...connection, total_timeout_ms: 5000 }]);
  const gateway = createModelGateway({ connections: Object.fromEntries(connections) as ModelGatewayOptions['connections'], secrets });
  try {
    return await Promise.all(Object.entries(config.models).map(async ([name, model]): Promise<Finding> => {
      const check = `model ${name}`;
      if (model.provider === 'scripted') return { check, state: 'warning', detail: 'the built-in scripted stand-in, no language model', mend: 'set OLLAMA_HOST and OLLAMA_MODEL' };
      return { check, ...modelFinding(await gateway.served({ ...model, name }), model) };
    }));
  } finally {
    gateway.close();
  }
}

type Model = Setup['config']['models'][string];

function modelFinding(served: Served, { provider, model, base_url }: Model): Omit<Finding, 'check'> {
  switch (served.type) {
    case 'served': return { state: 'ok', detail: `${model} at ${base_url}` };
    case 'untold': return { state: 'warning', detail: `${base_url} answers, but does not tell which models it has`, mend: 'try it with `treadle run`; if that fails, correct base_url' };
    case 'not_served': return {
      state: 'error', detail: `${base_url} does not have ${model}`, mend: provider === 'ollama' ? `ollama pull ${model}` : `use a model it has: ${served.others.slice(0, 5).join(', ') || 'there is none'}`,
    };
    case 'failed': {
      const { error_type, detail } = served.failure;
      if (error_type === 'auth_invalid' || error_type === 'access_denied') return { state: 'error', detail: `${base_url} refuses the key: ${detail}`, mend: "correct the model's credentials" };
      return { state: 'error', detail: `${base_url} does not answer: ${detail}`, mend: provider === 'ollama' ? 'start Ollama, or correct base_url' : 'start the server, or correct base_url' };
    }
  }
}

function checkAgents({ config }: Setup): Finding[] {
  const agents = Object.keys(config.agents).map((name): Finding => {
    const chain = agentSpecOf(config, name)?.chain;
    return { check: `agent ${name}`, state: 'ok', detail: `chain ${chain?.name ?? '?'}: ${chain?.models.map((model) => model.name).join(' → ') ?? ''}` };
  });
  return [...agents, ...configWarnings(config).map((each): Finding => ({ check: 'agents', state: 'warning', detail: each }))];
}

async function checkServers({ config, secrets }: Setup): Promise<Finding[]> {
  const servers = mcpServers(config);
  const runner = createToolRunner(toolSources(config, { secrets }));
  try {
    return await Promise.all(Object.entries(servers).map(async ([name, server]): Promise<Finding> => {
      const found = await runner.probe(name);
      return found.type === 'ok'
        ? { check: `MCP server ${name}`, state: 'ok', detail: `${found.tools} tools` }
        : { check: `MCP server ${name}`, state: 'error', detail: found.problem, mend: 'url' in server ? 'correct its url or headers; a private address must stand in egress.allow' : 'start its command by hand and see what it says' };
    }));
  } finally {
    await runner.close();
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
