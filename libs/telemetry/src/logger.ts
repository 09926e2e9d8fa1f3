/**
 * Logs: one JSON object per line on stdout, without secrets.
 *
 * 1  Whatever is logged, logging it throws nothing: what other people's code throws may resist being read, and the last thing to hear of it is
 *    often the log of a process that others still need.
 */
import { pino, stdSerializers, type Logger } from 'pino';
import { redactKeys, secretPaths, valueRedactor } from './redact.ts';

export type LogLevel = 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal' | 'silent';

export interface LoggerOptions {
  readonly level: LogLevel;
  /** The process's role: `api`, `worker`, `cli`. */
  readonly name: string;
  /** Values that must never be shown, e.g. from `env:NAME`; those under 6 characters are not looked for. */
  readonly secrets: readonly string[];
  /** Where lines go; default stdout, synchronously, so that the last words of a dying process are not lost. */
  readonly destination?: { write(line: string): void };
}

/** Of what libraries hang onto their errors the facts alone: a request, a response or a command would bring along what users and models said. */
const errorFacts = ['type', 'message', 'stack', 'code', 'errno', 'syscall', 'address', 'port', 'hostname', 'status', 'statusCode', 'retryable'] as const;

/** Never throws. */
function errorFields(error: unknown): unknown {
  return readably(() => factsOf(error), { type: 'unknown', message: unreadable });
}

function factsOf(error: unknown): unknown {
  if (!(error instanceof Error)) return String(error);
  const fields: Readonly<Record<string, unknown>> = { ...stdSerializers.err(error) };
  const facts = Object.fromEntries(errorFacts.flatMap((name) => isFact(fields[name]) ? [[name, fields[name]]] : []));
  // A host with several addresses fails once for each, and says so only in here.
  return error instanceof AggregateError ? { ...facts, errors: error.errors.slice(0, mostErrors).map(errorFields) } : facts;
}

const mostErrors = 5;
const unreadable = 'a value that cannot be read';

/** `instead` where reading throws. */
function readably<T>(read: () => T, instead: T): T {
  try {
    return read();
  } catch {
    return instead;
  }
}

function isFact(value: unknown): boolean {
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean';
}

export function createLogger({ level, name, secrets, destination }: LoggerOptions): Logger {
  const withoutSecrets = valueRedactor(secrets);
  const settings = {
    level, name,
    timestamp: pino.stdTimeFunctions.isoTime,
    serializers: { err: errorFields },
    formatters: {
      level: (label: string) => ({ level: label }),
      bindings: (bindings: object) => redactKeys(bindings) as Record<string, unknown>,
      log: (fields: object) => readably(() => redactKeys(fields), { err: unreadable }) as Record<string, unknown>,
    },
    // Bindings of child loggers pass none of the formatters.
    redact: { paths: secretPaths, censor: '[redacted]' },
    hooks: { streamWrite: withoutSecrets },
  };
  return pino(settings, destination ?? pino.destination({ fd: 1, sync: true }));
}
