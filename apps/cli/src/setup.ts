/**
 * What every process starts from: the environment and the configuration file, both checked whole before anything is connected.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { builtinConfig, environmentSecrets, loadConfig, readEnvironment, type LoadedConfig, type Settings } from '@treadle/config';

export const projectRoot = join(import.meta.dirname, '../../..');

/** What the API said, where it is the API that refused. */
export interface Refusal { readonly code: string; readonly message: string; readonly problems: readonly { readonly path: string; readonly problem: string }[] }

/** A command ends with this exit code and, on standard error, these lines, or with `--json` one object. */
export class CommandFailed extends Error {
  readonly exitCode: number;
  readonly #refusal: Refusal | null;

  constructor(exitCode: number, lines: readonly string[], refusal: Refusal | null = null) {
    super(lines.join('\n'));
    this.name = 'CommandFailed';
    this.exitCode = exitCode;
    this.#refusal = refusal;
  }

  /** `code` is the API's, else the kind of failure that the exit code stands for. */
  asJson(): Refusal {
    const [message = '', ...more] = this.message.split('\n');
    return this.#refusal ?? { code: failureCodes[this.exitCode] ?? 'failed', message, problems: more.map((problem) => ({ path: '', problem })) };
  }
}

const failureCodes: Readonly<Record<number, string>> = { 1: 'failed', 2: 'bad_usage', 3: 'unreachable' };

/** `failed` is our own fault: what none of the others is. */
export const exitCodes = { done: 0, runDidNotComplete: 1, failed: 1, badUsage: 2, unreachable: 3 } as const;

export interface Setup {
  readonly settings: Settings;
  readonly config: LoadedConfig;
  /** The configuration file, or `built-in`. */
  readonly source: string;
  /** Values that must never be shown. */
  readonly secrets: readonly string[];
}

/** Throws `CommandFailed` with every fault of environment and configuration, exit code 2. */
export async function loadSetup(env: NodeJS.ProcessEnv, options: { readonly configPath?: string | undefined } = {}): Promise<Setup> {
  const environment = readEnvironment(env);
  const settings = environment.type === 'ok' ? environment.settings : null;
  const outcome = await loadConfig({
    path: options.configPath ?? settings?.configPath ?? undefined, cwd: process.cwd(), env,
    builtin: builtinConfig({
      ...(settings?.ollamaHost == null ? {} : { ollamaHost: settings.ollamaHost }),
      ...(settings?.ollamaModel == null ? {} : { ollamaModel: settings.ollamaModel }),
      docsFolder: settings?.docsFolder ?? join(projectRoot, 'docs'), filesystemServer: filesystemServer(),
    }),
  });
  const faults = [
    ...(environment.type === 'invalid' ? environment.problems.map((each) => `${each.name}: ${each.problem}`) : []),
    ...(outcome.type === 'invalid' ? outcome.problems.map((each) => `${outcome.source}: ${each.path === '' ? '' : `${each.path}: `}${each.problem}`) : []),
  ];
  if (faults.length > 0 || settings === null || outcome.type === 'invalid') throw new CommandFailed(exitCodes.badUsage, faults);
  return { settings, config: outcome.config, source: outcome.source, secrets: [...environmentSecrets(env), ...outcome.config.secrets] };
}

/** What a failed `listen` means for the command. */
export function portTaken(variable: string, port: number, error: NodeJS.ErrnoException): unknown {
  if (error.code !== 'EADDRINUSE' && error.code !== 'EACCES') return error;
  return new CommandFailed(exitCodes.badUsage, [`${variable}: port ${port} ${error.code === 'EACCES' ? 'may not be used' : 'is taken'}; choose another, or 0 for any free one`]);
}

/** How long the last spans may take to be sent: what is left of the time to stop, but neither nothing nor long. */
export function flushMs(leftMs: number): number {
  return Math.min(Math.max(leftMs, 1000), 5000);
}

export async function packageVersion(): Promise<string> {
  return (JSON.parse(await readFile(new URL('../package.json', import.meta.url), 'utf8')) as { version: string }).version;
}

/** The public MCP filesystem server, run with this very Node.js. */
function filesystemServer(): { command: string; args: string[] } {
  return { command: process.execPath, args: [join(projectRoot, 'node_modules/@modelcontextprotocol/server-filesystem/dist/index.js')] };
}
