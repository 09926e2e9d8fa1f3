/** `treadle breakers …`: what the fleet does not ask now, and a person's word on it. */
import { parseArgs } from 'node:util';
import type { Breaker } from '@treadle/client';
import { clientFromEnvironment } from '../server.ts';
import { CommandFailed, exitCodes } from '../setup.ts';

export const breakersUsage = 'treadle breakers ls | open TARGET:ERROR_TYPE | reset ID   [--json]';

export async function breakersCommand(args: string[]): Promise<number> {
  const { values: { json }, positionals } = parseArgs({ args, allowPositionals: true, options: { json: { type: 'boolean', default: false } } });
  const [verb, id, ...more] = positionals;
  const client = clientFromEnvironment(process.env);
  const write = (text: string): void => { process.stdout.write(text); };
  if (verb === 'ls' && id === undefined) {
    const page = await client.breakers();
    write(json ? `${JSON.stringify(page)}\n` : page.data.map((each) => `${line(each)}\n`).join(''));
    return exitCodes.done;
  }
  if ((verb !== 'open' && verb !== 'reset') || id === undefined || more.length > 0) throw new CommandFailed(exitCodes.badUsage, [`usage: ${breakersUsage}`]);
  const changed = await client.changeBreaker(id, verb);
  write(json ? `${JSON.stringify(changed)}\n` : `${changed.id} ${verb === 'open' ? 'stays open until it is reset' : 'is reset'}\n`);
  return exitCodes.done;
}

function line({ id, kind, state, error_type, forced, probe_at }: Breaker): string {
  const until = forced ? 'until it is reset' : `until ${probe_at}`;
  return [id, kind.padEnd(7), state.padEnd(9), error_type.padEnd(16), until].join('  ');
}
