/** Finds, reads and checks the configuration file. All faults are reported at once. */
import { access, readFile } from 'node:fs/promises';
import { registerHooks } from 'node:module';
import { isAbsolute, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { ambiguousNames } from './answer-names.ts';
import { problemsOf, type ConfigProblem } from './problem.ts';
import { danglingReferences } from './references.ts';
import { configSchema, type CheckedConfig, type TreadleConfig } from './schema/config.ts';
import { knownSecrets } from './known-secrets.ts';
import { resolveSecrets } from './secrets.ts';

/** A configuration without faults, secrets put in. */
export interface LoadedConfig extends CheckedConfig {
  /** Every value that came from `env:NAME`, for the logger's redaction. */
  readonly secrets: readonly string[];
}

export type ConfigOutcome =
  | { readonly type: 'ok'; readonly config: LoadedConfig; /** The file, or `built-in`. */ readonly source: string }
  | { readonly type: 'invalid'; readonly problems: readonly ConfigProblem[]; readonly source: string };

type Environment = Readonly<Record<string, string | undefined>>;

export interface LoadOptions {
  /** Of the file (`TREADLE_CONFIG`); relative to `cwd`. Undefined: `treadle.config.ts`, then `treadle.config.json`, then the built-in one. */
  readonly path: string | undefined;
  readonly cwd: string;
  readonly env: Environment;
  readonly builtin: TreadleConfig;
}

const defaultNames = ['treadle.config.ts', 'treadle.config.json'];

/** Never throws for what a file says or does; a `.ts` file is run (Node strips its types), its default export counts. */
export async function loadConfig(options: LoadOptions): Promise<ConfigOutcome> {
  const file = await findFile(options);
  if (file === undefined) return checked(options.builtin, options.env, 'built-in');
  const raw = await readRaw(file);
  if (raw.type === 'unreadable') return { type: 'invalid', problems: [{ path: '', problem: raw.problem }], source: file };
  return checked(raw.value, options.env, file);
}

/** Checks a configuration that is already in memory, as `loadConfig` checks a file. */
export function checkConfig(raw: unknown, env: Environment): { type: 'ok'; config: LoadedConfig } | { type: 'invalid'; problems: ConfigProblem[] } {
  const resolved = resolveSecrets(raw, env);
  const parsed = configSchema.safeParse(resolved.value, { reportInput: false });
  const found = [...resolved.problems, ...danglingReferences(raw), ...ambiguousNames(raw)];
  const known = new Set(found.map((each) => each.path));
  // A place whose secret is missing is not judged a second time by what stands there instead.
  if (!parsed.success) found.push(...problemsOf(parsed.error).filter((each) => !known.has(each.path)));
  if (parsed.success && Object.keys(parsed.data.agents).length === 0) found.push({ path: 'agents', problem: 'expected at least one agent' });
  if (!parsed.success || found.length > 0) return { type: 'invalid', problems: found };
  return { type: 'ok', config: { ...parsed.data, secrets: knownSecrets(parsed.data, resolved.secrets) } };
}

function checked(raw: unknown, env: Environment, source: string): ConfigOutcome {
  return { ...checkConfig(raw, env), source };
}

async function findFile({ path, cwd }: LoadOptions): Promise<string | undefined> {
  if (path !== undefined) return isAbsolute(path) ? path : join(cwd, path);
  for (const name of defaultNames) {
    const file = join(cwd, name);
    if (await exists(file)) return file;
  }
  return undefined;
}

type Raw = { readonly type: 'read'; readonly value: unknown } | { readonly type: 'unreadable'; readonly problem: string };

async function readRaw(file: string): Promise<Raw> {
  if (!await exists(file)) return { type: 'unreadable', problem: 'the file is not there or cannot be read' };
  try {
    if (file.endsWith('.json')) return jsonOnly(JSON.parse(await readFile(file, 'utf8')));
    const module = await importWithOurPackages(/* @vite-ignore */ pathToFileURL(file).href) as { default?: unknown };
    if (module.default === undefined) return { type: 'unreadable', problem: 'expected a default export: export default defineConfig({ … })' };
    return { type: 'read', value: module.default };
  } catch (error) {
    return { type: 'unreadable', problem: `cannot be read: ${error instanceof Error ? error.message : String(error)}` };
  }
}

function jsonOnly(value: unknown): Raw {
  if (typeof value === 'object' && value !== null && 'functions' in value) {
    return { type: 'unreadable', problem: 'functions: only treadle.config.ts can hold functions' };
  }
  return { type: 'read', value };
}

/**
 * A configuration may lie anywhere, also where nothing is installed: what it imports to describe itself is then found where this
 * package lies.
 */
async function importWithOurPackages(href: string): Promise<{ default?: unknown }> {
  const hooks = registerHooks({
    resolve: (specifier, context, next) => {
      try {
        return next(specifier, context);
      } catch (error) {
        if (!ours.includes(specifier)) throw error;
        return next(specifier, { ...context, parentURL: import.meta.url });
      }
    },
  });
  try {
    return await import(/* @vite-ignore */ href) as { default?: unknown };
  } finally {
    hooks.deregister();
  }
}

const ours = ['@treadle/config', 'zod'];

async function exists(file: string): Promise<boolean> {
  return access(file).then(() => true, () => false);
}
