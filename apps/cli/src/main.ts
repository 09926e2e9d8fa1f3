/**
 * The command line's entry: finds the command, runs it, turns its outcome into an exit code.
 * Commands are loaded on use, so that `./treadle` answers at once.
 */
const commands: Record<string, () => Promise<(args: string[]) => Promise<number>>> = {
  test: async () => (await import('./commands/test.ts')).testCommand,
};

const [name = 'help', ...args] = process.argv.slice(2);
const load = commands[name];
if (load === undefined) {
  process.stderr.write(`treadle: unknown command "${name}". Commands: ${Object.keys(commands).join(', ')}\n`);
  process.exitCode = 2;
} else {
  const run = await load();
  process.exitCode = await run(args);
}
