/**
 * `"env:NAME"` in any string value stands for a secret. It is put in only where addresses and keys belong; in what becomes
 * part of a run (agents, chains, a model's name) it is refused, since it would enter the log.
 */
import { pathText, type ConfigProblem } from './problem.ts';

export interface Resolved {
  readonly value: unknown;
  /** Every value that came from the environment, for redaction. */
  readonly secrets: readonly string[];
  readonly problems: readonly ConfigProblem[];
}

const form = /^env:([A-Za-z_][A-Za-z0-9_]*)$/;

/** A copy of `raw` with its secrets put in; functions are left as they are. */
export function resolveSecrets(raw: unknown, env: Readonly<Record<string, string | undefined>>): Resolved {
  const secrets: string[] = [];
  const problems: ConfigProblem[] = [];
  const text = (value: string, path: readonly string[]): string => {
    const name = form.exec(value)?.[1];
    if (name === undefined) return value;
    if (entersRuns(path)) {
      problems.push({ path: pathText(path), problem: 'a secret may not stand here: it would enter the log of every run' });
      return value;
    }
    const secret = env[name];
    if (secret === undefined || secret === '') problems.push({ path: pathText(path), problem: `the environment variable ${name} is not set` });
    else secrets.push(secret);
    return secret ?? value;
  };
  const walk = (value: unknown, path: readonly string[]): unknown => {
    if (typeof value === 'string') return text(value, path);
    if (Array.isArray(value)) return value.map((item, index) => walk(item, [...path, String(index)]));
    if (!isPlain(value) || path[0] === 'functions') return value;
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, walk(item, [...path, key])]));
  };
  return { value: walk(raw, []), secrets: [...new Set(secrets)], problems };
}

function entersRuns(path: readonly string[]): boolean {
  if (path[0] === 'agents' || path[0] === 'chains') return true;
  if (path[0] === 'http_tools') return path[2] === 'description' || path[2] === 'input_schema';
  return path[0] === 'models' && (path[2] === 'model' || path[2] === 'provider');
}

function isPlain(value: unknown): value is Record<string, unknown> {
  if (typeof value !== 'object' || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}
