/** `treadle runs …`: the API's runs from the terminal. */
import { parseArgs } from 'node:util';
import type { CancelFilter, Client, Run, RunTree } from '@treadle/client';
import { exitCodeOf, follow, summary } from '../follow.ts';
import { clientFromEnvironment } from '../server.ts';
import { CommandFailed, exitCodes } from '../setup.ts';

export const runsUsage = 'treadle runs ls [--status S] [--agent A] [--tag T] [--limit N] [--cursor C] | show ID | tail ID [--after N] | cancel ID | cancel [--agent A] [--status queued|running|paused] [--tag T] [--all] | pause ID | resume ID [--input TEXT] | steer ID TEXT | resolve ID TOOL_USE_ID happened|did_not_happen [TEXT] | approve ID TOOL_USE_ID [--input JSON] [--reason TEXT] | deny ID TOOL_USE_ID [--reason TEXT] | fork ID --after N [--input TEXT] [--chain C] | replay ID | rm ID   [--json]';

const later = ['export'];

interface Call {
  readonly client: Client;
  readonly id: string;
  /** What follows the id: its words, and all of it. */
  readonly words: readonly string[];
  readonly text: string;
  readonly input: string | undefined;
  readonly chain: string | undefined;
  readonly reason: string | undefined;
  readonly json: boolean;
  readonly after: number;
  readonly write: (text: string) => void;
}

export async function runsCommand(args: string[]): Promise<number> {
  const { values, positionals } = parseArgs({ args, allowPositionals: true, options: {
    status: { type: 'string' }, agent: { type: 'string' }, tag: { type: 'string' }, limit: { type: 'string' }, cursor: { type: 'string' }, after: { type: 'string', default: '0' },
    input: { type: 'string' }, chain: { type: 'string' }, reason: { type: 'string' }, all: { type: 'boolean', default: false }, json: { type: 'boolean', default: false },
  } });
  const [verb = '', id = '', ...rest] = positionals;
  const write = (text: string): void => { process.stdout.write(text); };
  if (later.includes(verb)) throw new CommandFailed(exitCodes.badUsage, [`not_supported: treadle runs ${verb} is not built yet`]);
  const client = clientFromEnvironment(process.env);
  if (verb === 'ls') return list({ client, json: values.json, write, query: { status: values.status, agent: values.agent, tag: values.tag, limit: values.limit, cursor: values.cursor } });
  if (verb === 'cancel' && positionals.length === 1) return cancelMany({ client, json: values.json, write, query: { status: values.status, agent: values.agent, tag: values.tag, cursor: values.cursor } }, values.all);
  const act = Object.hasOwn(verbs, verb) ? verbs[verb] : undefined;
  if (act === undefined || id === '') throw new CommandFailed(exitCodes.badUsage, [`usage: ${runsUsage}`]);
  const after = Number(values.after);
  if (!Number.isSafeInteger(after) || after < 0) throw new CommandFailed(exitCodes.badUsage, ['--after: expected an event number']);
  return act({ client, id, words: rest, text: rest.join(' '), input: values.input, chain: values.chain, reason: values.reason, json: values.json, after, write });
}

const verbs: Record<string, (call: Call) => Promise<number>> = {
  show: async ({ client, id, json, write }) => {
    const run = await client.run(id);
    write(json ? `${JSON.stringify(run)}\n` : `${summary(run)}\n${run.answer ?? ''}\n`);
    if (!json) for (const line of [...waitsFor(run), ...startedBy(await client.tree(id))]) write(`${line}\n`);
    return exitCodes.done;
  },
  tail: async ({ client, id, json, write, after }) => {
    const run = await follow({ client, id, json, write, after });
    if (!json) write(`${summary(run)}\n`);
    return exitCodeOf(run);
  },
  cancel: async (call) => accepted(call, await call.client.cancel(call.id), 'will be cancelled'),
  pause: async (call) => accepted(call, await call.client.pause(call.id), 'will pause at its next safe point'),
  resume: async (call) => accepted(call, await call.client.resume(call.id, call.input === undefined ? {} : { input: call.input }), 'goes on'),
  steer: async (call) => {
    if (call.text.trim() === '') throw new CommandFailed(exitCodes.badUsage, ['usage: treadle runs steer ID TEXT']);
    return accepted(call, await call.client.steer(call.id, call.text), 'will be told');
  },
  rm: async ({ client, id, json, write }) => {
    const removed = await client.remove(id);
    write(json ? `${JSON.stringify(removed)}\n` : `${removed.id} is deleted\n`);
    return exitCodes.done;
  },
  resolve: async (call) => {
    const [tool_use_id, outcome, ...content] = call.words;
    if (tool_use_id === undefined || (outcome !== 'happened' && outcome !== 'did_not_happen')) {
      throw new CommandFailed(exitCodes.badUsage, ['usage: treadle runs resolve ID TOOL_USE_ID happened|did_not_happen [TEXT for the model]']);
    }
    const told = content.length === 0 ? {} : { content: content.join(' ') };
    return accepted(call, await call.client.resolve(call.id, tool_use_id, { outcome, ...told }), 'has the word, and will go on');
  },
  approve: async (call) => {
    const input = call.input === undefined ? {} : { input: argumentsOf(call.input) };
    return accepted(call, await call.client.approve(call.id, onlyWord(call, 'approve ID TOOL_USE_ID [--input JSON] [--reason TEXT]'), { ...input, ...reasonOf(call) }), 'has the word, and goes on when it has all');
  },
  deny: async (call) => {
    if (call.input !== undefined) throw new CommandFailed(exitCodes.badUsage, ['--input: a call that is denied has no other arguments']);
    return accepted(call, await call.client.deny(call.id, onlyWord(call, 'deny ID TOOL_USE_ID [--reason TEXT]'), reasonOf(call)), 'has the word, and goes on when it has all');
  },
  fork: async (call) => {
    const { id, after, input, chain } = call;
    if (after === 0) throw new CommandFailed(exitCodes.badUsage, ['usage: treadle runs fork ID --after N [--input TEXT] [--chain C]']);
    const run = await call.client.fork(id, { after_seq: after, ...(input === undefined ? {} : { input }), ...(chain === undefined ? {} : { chain }) });
    return accepted(call, run, `goes on from ${id}`);
  },
  replay: async ({ client, id, json, write }) => {
    const report = await client.replay(id);
    write(json ? `${JSON.stringify(report)}\n` : `${report.events} events fold to ${report.identical ? 'the stored state' : 'another state than the stored one'}\n`);
    if (!report.identical && !json) write(`${JSON.stringify(report.differences, null, 2)}\n`);
    return report.identical ? exitCodes.done : exitCodes.runDidNotComplete;
  },
};

function onlyWord({ words: [tool_use_id, ...more] }: Call, usage: string): string {
  if (tool_use_id === undefined || more.length > 0) throw new CommandFailed(exitCodes.badUsage, [`usage: treadle runs ${usage}`]);
  return tool_use_id;
}

function reasonOf({ reason }: Call): { readonly reason?: string } {
  return reason === undefined ? {} : { reason };
}

function argumentsOf(text: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
  } catch {
    // Said below, in the same words.
  }
  throw new CommandFailed(exitCodes.badUsage, ['--input: expected a JSON object, the arguments of the call']);
}

/** A line for each call that needs a person's word. */
function waitsFor({ id, pending }: Run): string[] {
  const calls = Array.isArray(pending) ? pending as readonly { kind: string; tool_use_id: string; tool_name: string; tool_input: unknown }[] : [];
  return calls.flatMap(({ kind, tool_use_id, tool_name, tool_input }) => {
    const call = `${tool_name} ${JSON.stringify(tool_input)}`;
    if (kind === 'approval') return [`waits for approval: ${call}\n  treadle runs approve ${id} ${tool_use_id} (or deny)`];
    return kind === 'outcome' ? [`may or may not have happened: ${call}\n  treadle runs resolve ${id} ${tool_use_id} happened (or did_not_happen)`] : [];
  });
}

/** A line for each descendant, indented by its depth, and what of its calls needs a person's word. */
function startedBy(tree: RunTree, depth = 1): string[] {
  const indent = '  '.repeat(depth);
  return tree.children.flatMap((child) => [
    `${indent}started ${child.run.agent}: ${summary(child.run).split('\n')[0] ?? ''}`,
    ...waitsFor(child.run).map((line) => `${indent}  ${line.replaceAll('\n', `\n${indent}  `)}`), ...startedBy(child, depth + 1)]);
}

function accepted({ json, write }: Call, run: Run, what: string): number {
  write(json ? `${JSON.stringify(run)}\n` : `${run.id} ${what}\n`);
  return exitCodes.done;
}

interface Listing { readonly client: Client; readonly json: boolean; readonly write: (text: string) => void; readonly query: Readonly<Record<string, string | undefined>> }

/** Until there are no more of them. */
async function cancelMany({ client, json, write, query: { status, agent, tag, cursor } }: Listing, all: boolean): Promise<number> {
  const named = { ...(status === undefined ? {} : { status: status as NonNullable<CancelFilter['status']> }), ...(agent === undefined ? {} : { agent }), ...(tag === undefined ? {} : { tag }) };
  if (Object.keys(named).length === 0 && !all) throw new CommandFailed(exitCodes.badUsage, ['cancel what? name a run, or --agent, --status, --tag, or --all', `usage: ${runsUsage}`]);
  const filter: CancelFilter = { ...named, ...(all ? { all: true } : {}) };
  const run_ids: string[] = [];
  let next = cursor ?? null;
  do {
    const page = await client.cancelRuns({ ...filter, ...(next === null ? {} : { cursor: next }) });
    run_ids.push(...page.run_ids);
    next = page.next_cursor;
  } while (next !== null);
  write(json ? `${JSON.stringify({ cancelled: run_ids.length, run_ids })}\n` : `${run_ids.length} runs will be cancelled\n`);
  return exitCodes.done;
}

async function list({ client, json, write, query }: Listing): Promise<number> {
  const asked = Object.fromEntries(Object.entries(query).filter((entry): entry is [string, string] => entry[1] !== undefined));
  const page = await client.runs(asked);
  if (json) {
    write(`${JSON.stringify(page)}\n`);
    return exitCodes.done;
  }
  for (const run of page.data) write(`${line(run)}\n`);
  if (page.next_cursor !== null) write(`more: --cursor ${page.next_cursor}\n`);
  return exitCodes.done;
}

function line(run: Run): string {
  return [run.id, run.status.padEnd(9), (run.stop_reason ?? '').padEnd(14), run.agent.padEnd(12), run.created_at].join('  ');
}
