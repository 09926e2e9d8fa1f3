/** `treadle keys …`: API keys for tenants, from the terminal. */
import { parseArgs } from 'node:util';
import type { ApiKey, KeyScope } from '@treadle/client';
import { clientFromEnvironment } from '../server.ts';
import { CommandFailed, exitCodes } from '../setup.ts';

export const keysUsage = 'treadle keys create [--tenant T] [--scope read|write|admin]… [--name N] [--expires TIME|30d|12h] | ls [--tenant T] [--limit N] [--cursor C] | revoke ID   [--json]';

const options = {
  tenant: { type: 'string' }, scope: { type: 'string', multiple: true }, name: { type: 'string' }, expires: { type: 'string' }, limit: { type: 'string' }, cursor: { type: 'string' },
  json: { type: 'boolean', default: false },
} as const;

type Values = ReturnType<typeof parse>['values'];

function parse(args: string[]) {
  return parseArgs({ args, allowPositionals: true, options });
}

/** What goes with which verb. */
const taken: Readonly<Record<string, { readonly words: number; readonly options: readonly (keyof Values)[] }>> = {
  create: { words: 0, options: ['tenant', 'scope', 'name', 'expires'] }, ls: { words: 0, options: ['tenant', 'limit', 'cursor'] }, revoke: { words: 1, options: [] },
};

export async function keysCommand(args: string[]): Promise<number> {
  const { values, positionals } = parse(args);
  const [verb = '', ...words] = positionals;
  const wanted = Object.hasOwn(taken, verb) ? taken[verb] : undefined;
  const named = (Object.keys(values) as (keyof Values)[]).filter((option) => option !== 'json');
  if (wanted === undefined || words.length !== wanted.words || named.some((option) => !wanted.options.includes(option))) throw new CommandFailed(exitCodes.badUsage, [`usage: ${keysUsage}`]);
  const { value, text } = await done(verb, words, values);
  process.stdout.write(values.json ? `${JSON.stringify(value)}\n` : text);
  return exitCodes.done;
}

async function done(verb: string, [id = '']: readonly string[], { tenant, scope, name, expires, limit, cursor }: Values): Promise<{ readonly value: unknown; readonly text: string }> {
  const client = clientFromEnvironment(process.env);
  if (verb === 'create') {
    const key = await client.createKey({
      ...(tenant === undefined ? {} : { tenant }), ...(name === undefined ? {} : { name }), ...(expires === undefined ? {} : { expires_at: timeOf(expires, Date.now()) }),
      // What they may be the API says best.
      ...(scope === undefined ? {} : { scopes: scope as KeyScope[] }),
    });
    return { value: key, text: `${line(key)}\n${key.key}\nKeep it: it is shown this once.\n` };
  }
  if (verb === 'revoke') {
    const revoked = await client.revokeKey(id);
    return { value: revoked, text: `${revoked.id} is revoked\n` };
  }
  const page = await client.keys({ ...(tenant === undefined ? {} : { tenant }), ...(limit === undefined ? {} : { limit }), ...(cursor === undefined ? {} : { cursor }) });
  const more = page.next_cursor === null ? '' : `more: --cursor ${page.next_cursor}\n`;
  return { value: page, text: `${page.data.map((key) => `${line(key)}\n`).join('')}${more}` };
}

const unitMs: Readonly<Record<string, number>> = { d: 86_400_000, h: 3_600_000 };

/** A time as it stands, or so long from now. */
function timeOf(text: string, nowMs: number): string {
  const [, count, unit] = /^(\d{1,5})([dh])$/.exec(text) ?? [];
  return count === undefined || unit === undefined ? text : new Date(nowMs + Number(count) * unitMs[unit]!).toISOString();
}

function line({ id, tenant, scopes, name, expires_at }: ApiKey): string {
  return [id, tenant, scopes.join(','), expires_at === null ? 'never expires' : `until ${expires_at}`, name ?? ''].filter((part) => part !== '').join('  ');
}
