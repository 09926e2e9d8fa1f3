/** Reads and checks all variables at once, so that one start names every bad one. */
import { partsOf } from '../known-secrets.ts';
import { isLoopback } from './parsers.ts';
import { environmentTable, passedOnPrefix, type TableValues, type Variable } from './table.ts';

export interface EnvironmentProblem { readonly name: string; readonly problem: string }

export interface Settings extends TableValues {
  /** The `OTEL_*` variables, unread. */
  readonly otel: Readonly<Record<string, string>>;
}

export type EnvironmentOutcome =
  | { readonly type: 'ok'; readonly settings: Settings }
  | { readonly type: 'invalid'; readonly problems: readonly EnvironmentProblem[] };

type Environment = Readonly<Record<string, string | undefined>>;

/** An empty value counts as unset, as containers set it. Never throws; no problem repeats a value. */
export function readEnvironment(env: Environment): EnvironmentOutcome {
  const problems: EnvironmentProblem[] = [];
  const rows = Object.entries(environmentTable) as [keyof TableValues, Variable<unknown, unknown>][];
  const values = Object.fromEntries(rows.map(([key, row]) => [key, valueOf(row, env[row.name], problems)])) as unknown as TableValues;
  problems.push(...together(values, new Set(problems.map((each) => each.name))));
  if (problems.length > 0) return { type: 'invalid', problems };
  return { type: 'ok', settings: { ...values, otel: passedOn(env) } };
}

/** Values of `env` that must never be shown, for the logger's redaction. */
export function environmentSecrets(env: Environment): string[] {
  return Object.values(environmentTable).filter((row) => row.secret).flatMap((row) => env[row.name] ?? []).flatMap((value) => [value, ...partsOf(value)]).filter((value) => value !== '');
}

function valueOf(row: Variable<unknown, unknown>, text: string | undefined, problems: EnvironmentProblem[]): unknown {
  if (text === undefined || text.trim() === '') return row.default;
  const parsed = row.parse(text.trim());
  if (parsed.type === 'ok') return parsed.value;
  problems.push({ name: row.name, problem: `expected ${parsed.expected}` });
  return row.default;
}

/** What only several variables together can get wrong. */
function together(values: TableValues, bad: ReadonlySet<string>): EnvironmentProblem[] {
  const problems: EnvironmentProblem[] = [];
  if (!isLoopback(values.host) && values.auth === 'off' && !bad.has('TREADLE_AUTH')) {
    problems.push({ name: 'HOST', problem: 'expected a loopback address (127.0.0.1, ::1, localhost) while TREADLE_AUTH is off; set TREADLE_AUTH=keys to listen elsewhere' });
  }
  if ((values.s3AccessKeyId === null) !== (values.s3SecretAccessKey === null)) {
    const name = values.s3AccessKeyId === null ? 'S3_ACCESS_KEY_ID' : 'S3_SECRET_ACCESS_KEY';
    problems.push({ name, problem: 'expected to be set, since the other half of the key is' });
  }
  if (values.s3Endpoint !== null && values.s3Bucket === null && !bad.has('S3_BUCKET')) {
    problems.push({ name: 'S3_BUCKET', problem: 'expected to be set, since S3_ENDPOINT is' });
  }
  return problems;
}

function passedOn(env: Environment): Record<string, string> {
  return Object.fromEntries(Object.entries(env).filter((entry): entry is [string, string] => entry[0].startsWith(passedOnPrefix) && entry[1] !== undefined));
}
