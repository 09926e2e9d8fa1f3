/**
 * The command line's entry: finds the command, runs it, turns its outcome into an exit code.
 * Commands are loaded on use, so that `treadle` answers at once.
 */
import { asCommandFailure } from './server.ts';
import { CommandFailed, exitCodes } from './setup.ts';

interface Command {
  readonly usage: string;
  readonly about: string;
  /** The usage with all forms and options, `|` between them, where `usage` has no room for it. */
  readonly whole?: () => Promise<string>;
  readonly load: () => Promise<(args: string[]) => Promise<number>>;
}

const commands: Record<string, Command> = {
  demo: { usage: '["question"] [--json]', about: 'start everything, watch an agent answer from real files, stop everything', load: async () => (await import('./commands/demo.ts')).demoCommand },
  up: { usage: '[--workers N] [--port P] [--data DIR] [--config FILE]', about: 'the whole stack in the foreground', load: async () => (await import('./commands/up.ts')).upCommand },
  run: { usage: '"…" [--agent A] [--no-follow] [--json]', about: 'enqueue a run and follow it', load: async () => (await import('./commands/run.ts')).runCommand },
  runs: { usage: 'ls|show|tail|cancel|pause|resume|steer|resolve|fork|replay [ID] [--json]', about: 'look at runs and command them', whole: async () => (await import('./commands/runs.ts')).runsUsage, load: async () => (await import('./commands/runs.ts')).runsCommand },
  models: { usage: 'ls [--json]', about: 'the models that agents use', load: async () => (await import('./commands/models.ts')).modelsCommand },
  chains: { usage: 'ls [--json]', about: 'their chains, and the models on trial', load: async () => (await import('./commands/models.ts')).chainsCommand },
  canary: { usage: 'show|set|pause|promote|rollback CHAIN [STAGE] [--json]', about: 'look at the trial of a new model and move it', whole: async () => (await import('./commands/canary.ts')).canaryUsage, load: async () => (await import('./commands/canary.ts')).canaryCommand },
  schedules: { usage: 'create|ls|show|pause|resume|rm [ID] [--json]', about: 'runs at times: cron with a time zone', whole: async () => (await import('./commands/schedules.ts')).schedulesUsage, load: async () => (await import('./commands/schedules.ts')).schedulesCommand },
  breakers: { usage: 'ls|open|reset [ID] [--json]', about: 'models and keys that are not asked now; force a breaker open, or reset one', whole: async () => (await import('./commands/breakers.ts')).breakersUsage, load: async () => (await import('./commands/breakers.ts')).breakersCommand },
  usage: { usage: '[--group-by model|agent|day] [--from DAY] [--to DAY] [--json]', about: 'tokens and cost of ended runs', load: async () => (await import('./commands/usage.ts')).usageCommand },
  webhooks: { usage: 'ls|redeliver [ID] [--json]', about: 'what was told of ended runs; send it again', whole: async () => (await import('./commands/webhooks.ts')).webhooksUsage, load: async () => (await import('./commands/webhooks.ts')).webhooksCommand },
  keys: { usage: 'create|ls|revoke [ID] [--json]', about: 'API keys for tenants', whole: async () => (await import('./commands/keys.ts')).keysUsage, load: async () => (await import('./commands/keys.ts')).keysCommand },
  doctor: { usage: '[--config FILE] [--json]', about: 'check Redis, archive, models, agents and MCP servers', load: async () => (await import('./commands/doctor.ts')).doctorCommand },
  restore: { usage: '--from-archive [--accept-repeats] [--json]', about: 'Redis is lost: rebuild every unfinished run and every schedule from the archive', load: async () => (await import('./commands/restore.ts')).restoreCommand },
  api: { usage: '', about: 'one API process, configured by the environment', load: async () => (await import('./commands/api.ts')).apiCommand },
  worker: { usage: '', about: 'one worker process, configured by the environment', load: async () => (await import('./commands/worker.ts')).workerCommand },
  test: { usage: '', about: 'all tests, with what they need', load: async () => (await import('./commands/test.ts')).testCommand },
};

function help(): string {
  return ['usage: treadle <command>', ...Object.entries(commands).map(([name, each]) => `  ${`${name} ${each.usage}`.padEnd(60)} ${each.about}`), aboutJson].join('\n');
}

/** A form of the command on each line. */
async function helpOf(name: string, { usage, about, whole }: Command): Promise<string> {
  const forms = (await whole?.())?.replaceAll(' | ', `\n       treadle ${name} `) ?? `treadle ${name} ${usage}`;
  return [`usage: ${forms}`, about, ...(usage.includes('--json') ? [aboutJson] : [])].join('\n');
}

const aboutJson = 'With --json a failure is one object on standard error: {"code","message","problems":[{"path","problem"}]}. Exit codes: 0 done, 1 did not complete, 2 bad usage, 3 unreachable.';

async function main(name: string | undefined, args: string[]): Promise<number> {
  if (name === undefined || name === 'help' || name === '--help' || args.includes('--help')) {
    const asked = name !== undefined && Object.hasOwn(commands, name) ? commands[name] : undefined;
    process.stdout.write(`${name === undefined || asked === undefined ? help() : await helpOf(name, asked)}\n`);
    return exitCodes.done;
  }
  const command = Object.hasOwn(commands, name) ? commands[name] : undefined;
  if (command === undefined) throw new CommandFailed(exitCodes.badUsage, [`unknown command "${name}"`, help()]);
  const run = await command.load();
  return run(args);
}

// Whoever reads our output may have read enough.
process.stdout.on('error', (error: NodeJS.ErrnoException) => { if (error.code === 'EPIPE') process.exit(0); });

const [name, ...args] = process.argv.slice(2);
try {
  process.exitCode = await main(name, args);
} catch (error) {
  const failure = await asFailure(error);
  process.stderr.write(args.includes('--json') ? `${JSON.stringify(failure.asJson())}\n` : `${failure.message.split('\n').map((line) => `treadle: ${line}`).join('\n')}\n`);
  process.exitCode = failure.exitCode;
}
// What a command leaves open (an idle connection that is closing) must not keep the process.
process.exit();

async function asFailure(error: unknown): Promise<CommandFailed> {
  const known = asCommandFailure(error);
  if (known instanceof CommandFailed) return known;
  const code = (error as { code?: unknown } | null)?.code;
  if (typeof code === 'string' && code.startsWith('ERR_PARSE_ARGS')) return new CommandFailed(exitCodes.badUsage, [error instanceof Error ? error.message : String(error)]);
  return new CommandFailed(exitCodes.failed, [error instanceof Error ? error.stack ?? error.message : String(error)]);
}
