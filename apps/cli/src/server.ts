/** The API that client commands talk to: `TREADLE_URL`, else the one on this machine's `PORT`. */
import { ApiError, createClient, ServerUnreachable, type Client } from '@treadle/client';
import { readEnvironment } from '@treadle/config';
import { CommandFailed, exitCodes } from './setup.ts';

export function clientFromEnvironment(env: NodeJS.ProcessEnv): Client {
  const outcome = readEnvironment(env);
  if (outcome.type === 'invalid') throw new CommandFailed(exitCodes.badUsage, outcome.problems.map((each) => `${each.name}: ${each.problem}`));
  const { url, host, port, apiKey } = outcome.settings;
  return createClient({ url: url ?? `http://${host}:${port}`, apiKey: apiKey ?? undefined });
}

/** What a failed call means for the command: its lines and exit code. */
export function asCommandFailure(error: unknown): unknown {
  if (error instanceof ServerUnreachable) return new CommandFailed(exitCodes.unreachable, [`${error.message}; is it running? (treadle up, or set TREADLE_URL)`]);
  if (error instanceof ApiError) {
    const exitCode = error.status >= 500 ? exitCodes.unreachable : exitCodes.badUsage;
    const { code, message, problems } = error;
    return new CommandFailed(exitCode, [`${code}: ${message}`, ...problems.map((each) => `  ${each.path}: ${each.problem}`)], { code, message, problems });
  }
  return error;
}
