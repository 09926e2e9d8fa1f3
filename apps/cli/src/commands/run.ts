/** `treadle run "…"`: enqueues a run and follows it. */
import { parseArgs } from 'node:util';
import { exitCodeOf, follow, summary } from '../follow.ts';
import { clientFromEnvironment } from '../server.ts';
import { CommandFailed, exitCodes } from '../setup.ts';

export const runUsage = 'treadle run "…" [--agent A] [--no-follow] [--json]';

export async function runCommand(args: string[]): Promise<number> {
  const { values, positionals } = parseArgs({ args, allowPositionals: true, options: {
    agent: { type: 'string' }, session: { type: 'string' }, 'no-follow': { type: 'boolean', default: false }, json: { type: 'boolean', default: false },
  } });
  const input = positionals.join(' ').trim();
  if (input === '') throw new CommandFailed(exitCodes.badUsage, [`usage: ${runUsage}`]);
  const client = clientFromEnvironment(process.env);
  const write = (text: string): void => { process.stdout.write(text); };
  const request = { input, ...(values.agent === undefined ? {} : { agent: values.agent }), ...(values.session === undefined ? {} : { session_id: values.session }) };
  const run = await client.createRun(request, { idempotencyKey: crypto.randomUUID() });
  if (values['no-follow']) {
    write(`${values.json ? JSON.stringify(run) : run.id}\n`);
    return exitCodes.done;
  }
  const ended = await follow({ client, id: run.id, json: values.json, write });
  write(`${values.json ? JSON.stringify(ended) : summary(ended)}\n`);
  return exitCodeOf(ended);
}
