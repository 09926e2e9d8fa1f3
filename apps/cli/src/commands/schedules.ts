/** `treadle schedules …`: runs at times, from the terminal. */
import { parseArgs } from 'node:util';
import type { Client, Schedule, ScheduledRunRequest } from '@treadle/client';
import { clientFromEnvironment } from '../server.ts';
import { CommandFailed, exitCodes } from '../setup.ts';

export const schedulesUsage = 'treadle schedules create CRON INPUT [--timezone ZONE] [--agent A] [--name N] [--session S] [--on-busy reject|queue|interrupt] [--chain C] [--tag T]… [--catch-up SECONDS] [--paused] | ls [--limit N] [--cursor C] | show ID | pause ID | resume ID | rm ID   [--json]';

const options = {
  timezone: { type: 'string' }, agent: { type: 'string' }, name: { type: 'string' }, session: { type: 'string' }, 'on-busy': { type: 'string' }, chain: { type: 'string' }, tag: { type: 'string', multiple: true },
  'catch-up': { type: 'string' }, paused: { type: 'boolean' }, limit: { type: 'string' }, cursor: { type: 'string' }, json: { type: 'boolean', default: false },
} as const;

type Values = ReturnType<typeof parse>['values'];

function parse(args: string[]) {
  return parseArgs({ args, allowPositionals: true, options });
}

export async function schedulesCommand(args: string[]): Promise<number> {
  const { values, positionals } = parse(args);
  const [verb = '', ...words] = positionals;
  const act = Object.hasOwn(verbs, verb) ? verbs[verb] : undefined;
  if (act === undefined || words.length !== act.words) throw badUsage();
  const { value, text } = await act.run({ client: clientFromEnvironment(process.env), words, values });
  process.stdout.write(values.json ? `${JSON.stringify(value)}\n` : text);
  return exitCodes.done;
}

interface Asked { readonly client: Client; readonly words: readonly string[]; readonly values: Values }
interface Verb { readonly words: number; run(asked: Asked): Promise<{ readonly value: unknown; readonly text: string }> }

const told = (schedule: Schedule, text: string) => ({ value: schedule, text });

const verbs: Readonly<Record<string, Verb>> = {
  create: { words: 2, run: async ({ client, words: [cron = '', input = ''], values }) => {
    const { timezone, name, paused } = values;
    const schedule = await client.createSchedule({
      cron, run: runOf(input, values), ...(timezone === undefined ? {} : { timezone }), ...(name === undefined ? {} : { name }), ...(paused === undefined ? {} : { paused }), ...catchUpOf(values),
    });
    return told(schedule, `${schedule.id} ${whenNext(schedule)}\n`);
  } },
  ls: { words: 0, run: async ({ client, values: { limit, cursor } }) => {
    const page = await client.schedules({ ...(limit === undefined ? {} : { limit }), ...(cursor === undefined ? {} : { cursor }) });
    const more = page.next_cursor === null ? '' : `more: --cursor ${page.next_cursor}\n`;
    return { value: page, text: `${page.data.map((schedule) => `${line(schedule)}\n`).join('')}${more}` };
  } },
  show: { words: 1, run: async ({ client, words: [id = ''] }) => {
    const schedule = await client.schedule(id);
    return told(schedule, shown(schedule));
  } },
  pause: { words: 1, run: async ({ client, words: [id = ''] }) => {
    const schedule = await client.changeSchedule(id, { paused: true });
    return told(schedule, `${schedule.id} is paused\n`);
  } },
  resume: { words: 1, run: async ({ client, words: [id = ''] }) => {
    const schedule = await client.changeSchedule(id, { paused: false });
    return told(schedule, `${schedule.id} ${whenNext(schedule)}\n`);
  } },
  rm: { words: 1, run: async ({ client, words: [id = ''] }) => {
    const removed = await client.removeSchedule(id);
    return { value: removed, text: `${removed.id} is deleted\n` };
  } },
};

function runOf(input: string, { agent, session, chain, tag, 'on-busy': on_busy }: Values): ScheduledRunRequest {
  return {
    input, ...(agent === undefined ? {} : { agent }), ...(session === undefined ? {} : { session_id: session }), ...(chain === undefined ? {} : { chain }), ...(tag === undefined ? {} : { tags: tag }),
    // What it may be the API says best.
    ...(on_busy === undefined ? {} : { on_busy: on_busy as NonNullable<ScheduledRunRequest['on_busy']> }),
  };
}

function catchUpOf({ 'catch-up': text }: Values): { readonly catch_up_s?: number } {
  if (text === undefined) return {};
  if (!/^\d{1,6}$/.test(text)) throw new CommandFailed(exitCodes.badUsage, ['--catch-up: expected a number of seconds']);
  return { catch_up_s: Number(text) };
}

function badUsage(): CommandFailed {
  return new CommandFailed(exitCodes.badUsage, [`usage: ${schedulesUsage}`]);
}

function whenNext({ paused, next_run_at }: Schedule): string {
  if (paused) return 'is paused';
  return next_run_at === null ? 'has no next time' : `is next due at ${next_run_at}`;
}

function line({ id, name, cron, timezone, paused, next_run_at, run }: Schedule): string {
  return [id, cron.padEnd(14), timezone.padEnd(16), (paused ? 'paused' : next_run_at ?? 'never').padEnd(24), run.agent.padEnd(12), name ?? ''].join('  ').trimEnd();
}

function shown(schedule: Schedule): string {
  const { id, name, cron, timezone, catch_up_s, run, last_run_at, last_run_id, last_error, counts } = schedule;
  const input = typeof run.input === 'string' ? run.input : JSON.stringify(run.input);
  return [
    `${id}${name === null ? '' : ` (${name})`} ${whenNext(schedule)}`, `${cron} in ${timezone}; made up for within ${catch_up_s} s`, `${run.agent}: ${input}`,
    last_run_id === null ? 'has made no run yet' : `last: ${last_run_id}, due at ${last_run_at ?? ''}`,
    `fired ${counts.fired}  skipped ${counts.skipped}  failed ${counts.failed}`, ...(last_error === null ? [] : [`${last_error.due_at} made no run: ${last_error.code}: ${last_error.message}`]), '',
  ].join('\n');
}
