/**
 * Script texts: one file per script in `scripts/`, shared functions in `scripts/includes/`. A line `-- include: name` is
 * replaced by the file of that name, once per script, in the place where it first stands; `queue` is the queue's fragment.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

export const scriptNames = [
  'active_runs', 'advance_schedule', 'append_many', 'archive_backlog', 'archive_duty', 'archive_duty_done', 'archived', 'change_schedule', 'claim', 'command', 'commit', 'count_schedules', 'create', 'create_schedule', 'create_session', 'due_for_archive', 'events', 'finished', 'hand_back', 'leave_schedule', 'ledger', 'list', 'list_schedules', 'list_sessions', 'moves',
  'pump', 'read', 'recount', 'remove', 'remove_schedule', 'removed', 'reserve_key', 'restore', 'restore_session', 'schedule', 'schedule_archived', 'seal', 'session', 'take_due', 'usage', 'watch', 'webhook_again', 'webhook_restore', 'webhook_settle', 'webhooks_list', 'webhooks_take', 'write_back',
] as const;

export type ScriptName = (typeof scriptNames)[number];

const folder = join(import.meta.dirname, 'scripts');
const includeLine = /^-- include: ([a-z-]+)$/gm;

/** Reads and joins all scripts. Throws where a file is missing. */
export function loadScripts(queueLua: string): Record<ScriptName, string> {
  const load = (name: ScriptName): string => {
    const done = new Set<string>();
    return readFileSync(join(folder, `${name}.lua`), 'utf8').replace(includeLine, (_, include: string) => {
      if (done.has(include)) return '';
      done.add(include);
      return include === 'queue' ? queueLua : readFileSync(join(folder, 'includes', `${include}.lua`), 'utf8');
    });
  };
  return Object.fromEntries(scriptNames.map((name) => [name, load(name)])) as Record<ScriptName, string>;
}
