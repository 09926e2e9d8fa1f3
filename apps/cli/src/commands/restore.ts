/** `treadle restore --from-archive`: Redis is lost; every unfinished run is built again from its archived log, and every schedule is put back. */
import { parseArgs } from 'node:util';
import { cronTimes } from '@treadle/cron';
import { restoreRuns, restoreSchedules, type RestoredSchedules, type RestoreSummary } from '@treadle/engine';
import { openArchive } from '@treadle/event-archive';
import { turnJobs } from '@treadle/queue';
import { connectRedis, createRedisClock, createRunStore, createScheduleStore } from '@treadle/run-store';
import { CommandFailed, exitCodes, loadSetup, type Setup } from '../setup.ts';

const usage = 'treadle restore --from-archive [--accept-repeats] [--config FILE] [--json]';
/** Between two lines of progress, ms. */
const tellEveryMs = 2000;

export async function restoreCommand(args: string[]): Promise<number> {
  const { values } = parseArgs({ args, options: {
    'from-archive': { type: 'boolean', default: false }, 'accept-repeats': { type: 'boolean', default: false }, config: { type: 'string' }, json: { type: 'boolean', default: false },
  } });
  if (!values['from-archive']) throw new CommandFailed(exitCodes.badUsage, [`usage: ${usage}`]);
  const setup = await loadSetup(process.env, { configPath: values.config });
  const summary = await restore(setup, values['accept-repeats']);
  process.stdout.write(values.json ? `${JSON.stringify(summary)}\n` : lines(summary));
  return summary.failed.length + summary.schedules.failed.length === 0 ? exitCodes.done : exitCodes.failed;
}

type Restored = RestoreSummary & { readonly schedules: RestoredSchedules };

async function restore({ settings }: Setup, accept_repeats: boolean): Promise<Restored> {
  if (settings.redisUrl === null) throw new CommandFailed(exitCodes.badUsage, ['REDIS_URL: expected to be set: the Redis that the runs are put back into (`treadle up` prints the address of its own)']);
  const redis = connectRedis(settings.redisUrl, { role: 'api' });
  try {
    await new Promise<void>((resolve, reject) => { redis.once('ready', resolve); redis.once('error', reject); });
    const store = createRunStore({ redis, jobs: turnJobs({ prefix: settings.prefix }) }, { prefix: settings.prefix, shards: settings.shards });
    const { archive } = openArchive({
      bucket: settings.s3Bucket, endpoint: settings.s3Endpoint, region: settings.s3Region, access_key_id: settings.s3AccessKeyId,
      secret_access_key: settings.s3SecretAccessKey, prefix: settings.s3Prefix ?? '', dir: settings.archiveDir ?? '.treadle/archive',
    });
    const clock = await createRedisClock(redis);
    const options = { accept_repeats, strict: settings.archiveMode === 'strict', shards: settings.shards };
    const runs = await restoreRuns({ store, archive, clock }, { ...options, onProgress: seldom(tell) });
    // Behind the runs, so that one that a schedule has made is there before the schedule could make it again.
    const schedules = createScheduleStore({ redis, jobs: turnJobs({ prefix: settings.prefix }) }, { prefix: settings.prefix, shards: settings.shards });
    return { ...runs, schedules: await restoreSchedules({ schedules, archive, cron: cronTimes, clock }, options) };
  } catch (error) {
    throw new CommandFailed(exitCodes.unreachable, [`Redis or the archive cannot be used: ${error instanceof Error ? error.message : String(error)}`, 'what was restored stays; asked again, it goes on']);
  } finally {
    redis.disconnect();
  }
}

function seldom(report: (summary: RestoreSummary) => void): (summary: RestoreSummary) => void {
  let lastMs = performance.now();
  return (summary) => {
    if (performance.now() - lastMs < tellEveryMs) return;
    lastMs = performance.now();
    report(summary);
  };
}

function tell({ found, restored, present, ended }: RestoreSummary): void {
  process.stderr.write(`${found} runs found, ${ended} of them ended, ${restored} restored, ${present} were there\n`);
}

function lines({ found, restored, waiting_for_word, present, ended, sessions, webhooks, failed, schedules }: Restored): string {
  return [
    `${found} runs are in the archive: ${ended} have ended, ${restored} were restored, ${present} are in Redis`,
    `${sessions} ended runs stand for their sessions`,
    ...(webhooks === 0 ? [] : [`${webhooks} ends of the last day are told to their webhooks, perhaps for a second time`]),
    ...(waiting_for_word === 0 ? [] : [`${waiting_for_word} wait for a person (pause_reason outcome): see treadle runs show, then runs resolve or runs resume`]),
    ...(schedules.found === 0 ? [] : [`${schedules.found} schedules are in the archive: ${schedules.restored} were restored, ${schedules.present} are in Redis`]),
    ...[...failed.map(({ run_id, problem }) => [run_id, problem]), ...schedules.failed.map(({ schedule_id, problem }) => [schedule_id, problem])].map(([id, problem]) => `not restored: ${id}: ${problem}`), '',
  ].join('\n');
}
