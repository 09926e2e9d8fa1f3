/**
 * `treadle demo`: the embedded stack, one real run of the demo agent on real files, its events live, its answer and the file
 * it came from. The stack is stopped again, and its data removed.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { createClient } from '@treadle/client';
import { exitCodeOf, follow, summary } from '../follow.ts';
import { CommandFailed, exitCodes, loadSetup } from '../setup.ts';
import { startStack, StoppedWhileStarting } from '../stack/stack.ts';
import { untilStopped } from './until-stopped.ts';

export const demoUsage = 'treadle demo ["a question about the docs folder"] [--json]';

const defaultQuestion = 'What does a worker do when its claim has been fenced?';

export async function demoCommand(args: string[]): Promise<number> {
  const { values, positionals } = parseArgs({ args, allowPositionals: true, options: { json: { type: 'boolean', default: false } } });
  const question = positionals.join(' ').trim() || defaultQuestion;
  const say = (line: string): void => { if (!values.json) process.stdout.write(`${line}\n`); };
  const stopping = new AbortController();
  const kills: (() => void)[] = [];
  const stopped = untilStopped(() => { for (const kill of kills) kill(); }).then(() => { stopping.abort(); });
  const env = await demoEnvironment(process.env);
  const { settings } = await loadSetup(env);
  say(env.OLLAMA_MODEL === undefined && env.OLLAMA_HOST === undefined
    ? 'No Ollama is reachable: the built-in scripted model stands in. It calls the real tools and answers from what they return, but it is no language model.'
    : `The model is ${env.OLLAMA_MODEL ?? 'the default one'} at ${env.OLLAMA_HOST ?? 'the local Ollama'}.`);
  say('Starting the embedded stack: Redis, API, one worker …');
  const dataDir = mkdtempSync(join(tmpdir(), 'treadle-demo-'));
  const removeData = (): void => { rmSync(dataDir, { recursive: true, force: true, maxRetries: 5, retryDelay: 20 }); };
  kills.push(removeData);
  try {
    const stack = await startStack({
      settings, env, dataDir, workers: 1, port: 0, signal: stopping.signal,
      // The folder goes last.
      onSpawn: (kill) => { kills.splice(kills.length - 1, 0, kill); }, onNews: (line) => { process.stderr.write(`treadle: ${line}\n`); },
    }).catch((error: unknown) => {
      const exitCode = error instanceof StoppedWhileStarting ? exitCodes.runDidNotComplete : exitCodes.unreachable;
      throw new CommandFailed(exitCode, [error instanceof Error ? error.message : String(error)]);
    });
    try {
      say(`Question: ${question}\n`);
      const cut = stopped.then(() => { throw new CommandFailed(exitCodes.runDidNotComplete, ['stopped']); });
      const broken = stack.broken.then((what) => { throw new CommandFailed(exitCodes.unreachable, [what]); });
      for (const each of [cut, broken]) each.catch(() => undefined);
      return await Promise.race([ask({ url: stack.apiUrl, question, json: values.json, say }), cut, broken]);
    } finally {
      await stack.stop();
    }
  } finally {
    removeData();
  }
}

async function ask({ url, question, json, say }: { url: string; question: string; json: boolean; say: (line: string) => void }): Promise<number> {
  const client = createClient({ url });
  const { id } = await client.createRun({ input: question });
  const run = await follow({ client, id, json, write: (text) => { process.stdout.write(text); } });
  const source = /Source:\s*(\S+)/i.exec(run.answer ?? '')?.[1];
  say(`\nAnswer:\n${run.answer ?? 'none'}\n`);
  if (source !== undefined) say(`The answer came from ${source}`);
  say(summary(run));
  if (json) process.stdout.write(`${JSON.stringify(run)}\n`);
  return exitCodeOf(run);
}

/** The user's own configuration and servers stay out of the demo; a reachable Ollama is used. */
async function demoEnvironment(env: NodeJS.ProcessEnv): Promise<NodeJS.ProcessEnv> {
  const kept = ['PATH', 'HOME', 'LANG', 'TMPDIR', 'NODE_OPTIONS', 'npm_config_nodedir', 'OLLAMA_HOST', 'OLLAMA_MODEL', 'TREADLE_DOCS'];
  const own: NodeJS.ProcessEnv = { ...Object.fromEntries(kept.flatMap((name) => env[name] === undefined ? [] : [[name, env[name]]])), METRICS_PORT: '0', LOG_LEVEL: 'warn' };
  if (own.OLLAMA_HOST !== undefined) return own;
  const local = await localModel();
  if (local !== null) return { OLLAMA_MODEL: local, ...own, OLLAMA_HOST: localOllama };
  delete own.OLLAMA_MODEL;
  return own;
}

const localOllama = 'http://127.0.0.1:11434';

/** The first model of an Ollama on this machine, null where there is none. */
async function localModel(): Promise<string | null> {
  try {
    const response = await fetch(`${localOllama}/api/tags`, { signal: AbortSignal.timeout(1000) });
    const { models } = await response.json() as { models?: { name: string }[] };
    return models?.[0]?.name ?? null;
  } catch {
    return null;
  }
}
