/** `treadle models ls` and `treadle chains ls`: what new runs may be served by. */
import { parseArgs } from 'node:util';
import type { ListedChain, ListedModel } from '@treadle/client';
import { clientFromEnvironment } from '../server.ts';
import { CommandFailed, exitCodes } from '../setup.ts';

export async function modelsCommand(args: string[]): Promise<number> {
  return list(args, { name: 'models', ask: (client) => client.models(), line: modelLine });
}

export async function chainsCommand(args: string[]): Promise<number> {
  return list(args, { name: 'chains', ask: (client) => client.chains(), line: chainLine });
}

interface Listing<T> { readonly name: string; readonly ask: (client: ReturnType<typeof clientFromEnvironment>) => Promise<{ readonly data: readonly T[] }>; readonly line: (item: T) => string }

async function list<T>(args: string[], { name, ask, line }: Listing<T>): Promise<number> {
  const { values, positionals } = parseArgs({ args, allowPositionals: true, options: { json: { type: 'boolean', default: false } } });
  if (positionals.join(' ') !== 'ls') throw new CommandFailed(exitCodes.badUsage, [`usage: treadle ${name} ls [--json]`]);
  const page = await ask(clientFromEnvironment(process.env));
  process.stdout.write(values.json ? `${JSON.stringify(page)}\n` : page.data.map((item) => `${line(item)}\n`).join(''));
  return exitCodes.done;
}

function modelLine({ name, provider, model, context_window, supports_tools, supports_images }: ListedModel): string {
  const can = [...(supports_tools ? ['tools'] : []), ...(supports_images ? ['images'] : [])].join(', ');
  return [name.padEnd(16), provider.padEnd(10), model.padEnd(24), `window ${context_window}`.padEnd(16), can].join(' ').trimEnd();
}

function chainLine({ name, models, canary }: ListedChain): string {
  const trial = canary === null ? '' : `   canary ${canary.model}: ${canary.stage} % (${canary.status.replace('_', ' ')})`;
  return `${name.padEnd(16)} ${models.join(' → ')}${trial}`;
}
