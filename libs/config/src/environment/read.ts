/** Reads and checks all variables at once, so that one start names every bad one. */
import { partsOf } from '../known-secrets.ts';
import { headerList, isLoopback } from './parsers.ts';
import { environmentTable, type TableValues, type Variable } from './table.ts';

export interface EnvironmentProblem { readonly name: string; readonly problem: string }

export type Settings = TableValues;

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
  return { type: 'ok', settings: values };
}

/** Values of `env` that must never be shown, for the logger's redaction. */
export function environmentSecrets(env: Environment): string[] {
  return Object.values(environmentTable).filter((row) => row.secret).flatMap((row) => env[row.name] ?? []).flatMap((value) => [value, ...partsOf(value), ...headerValues(value)]).filter((value) => value !== '');
}

/** Of a list of headers the values, as they stand there and as they are sent. */
function headerValues(value: string): string[] {
  if (headerList(value).type === 'bad') return [];
  return value.split(',').flatMap((pair) => {
    const written = pair.slice(pair.indexOf('=') + 1).trim();
    const sent = decodeURIComponent(written);
    return [written, sent, ...partsOf(sent)];
  });
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
  if (values.webhookPreviousSecret !== null && values.webhookSecret === null && !bad.has('TREADLE_WEBHOOK_SECRET')) {
    problems.push({ name: 'TREADLE_WEBHOOK_SECRET', problem: 'expected to be set, since TREADLE_WEBHOOK_PREVIOUS_SECRET is' });
  }
  if (values.s3Endpoint !== null && values.s3Bucket === null && !bad.has('S3_BUCKET')) {
    problems.push({ name: 'S3_BUCKET', problem: 'expected to be set, since S3_ENDPOINT is' });
  }
  return problems;
}
