/** `mcp_servers`, `http_tools`, `tools` and `functions`: where tools come from, and the host's own word on them. */
import { z } from 'zod';
import { isFunctionTool, type FunctionTool } from '../define-tool.ts';
import { httpAddress, httpHeaders, placeholdersOf, urlTemplate } from './addresses.ts';
import { schemaProblem } from './answer-schema.ts';
import { pattern, timeoutMs } from './names.ts';

/** Calls at once per worker process. */
const concurrency = z.int().min(1).max(1000);

/** A program that is started (`command`), or a server that is there already (`url`). */
export const mcpServerSchema = z.strictObject({
  command: z.string().min(1, 'expected the program to start').optional(),
  args: z.array(z.string()).default([]),
  /** Added to a short safe list of the worker's own variables; nothing else of them reaches the server. */
  env: z.record(z.string(), z.string()).default({}),
  /** Of a server that speaks streamable HTTP. */
  url: httpAddress.optional(),
  headers: httpHeaders.default({}),
  /** Whether the server's hints about its tools count. */
  trusted: z.boolean().default(false),
  /** Of all of its tools together. */
  concurrency: concurrency.default(8),
}).superRefine(({ command, url, args, env, headers }, context) => {
  const wrong = (key: string, message: string): void => { context.addIssue({ code: 'custom', path: [key], message }); };
  if (command === undefined && url === undefined) wrong('command', 'expected the program to start, or a url');
  if (command !== undefined && url !== undefined) wrong('url', 'a server has a command or a url, not both');
  if (command === undefined && url !== undefined && args.length > 0) wrong('args', 'only a server with a command has these');
  if (command === undefined && url !== undefined && Object.keys(env).length > 0) wrong('env', 'only a server with a command has these');
  if (command !== undefined && url === undefined && Object.keys(headers).length > 0) wrong('headers', 'only a server with a url has these');
});

/** JSON Schema of an object; `{}` is one without anything in it. */
const argumentsSchema = z.record(z.string(), z.unknown()).default({}).transform((schema) => ({ type: 'object', ...schema }) as Record<string, unknown>)
  .superRefine((schema, context) => {
    const problem = schema.type === 'object' ? schemaProblem(schema) : 'its type is not "object"';
    if (problem !== null) context.addIssue({ code: 'custom', message: `expected a JSON Schema of an object: ${problem}` });
  });

export const httpToolSchema = z.strictObject({
  method: z.enum(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE']).default('GET'),
  /** With `{name}` where an argument belongs; the others become the query (GET, HEAD, DELETE) or the JSON body. */
  url: urlTemplate,
  /** For the model. */
  description: z.string().max(8192).default(''),
  input_schema: argumentsSchema,
  headers: httpHeaders.default({}),
  concurrency: concurrency.optional(),
}).superRefine(({ url, input_schema: { required } }, context) => {
  const missing = [...new Set(placeholdersOf(url))].filter((name) => !(Array.isArray(required) && required.includes(name)));
  for (const name of missing) context.addIssue({ code: 'custom', path: ['url'], message: `{${name}} is not among the required arguments of input_schema` });
});

export const toolPolicySchema = z.strictObject({
  parallel: z.enum(['parallel', 'path', 'serial']).optional(),
  effect: z.enum(['read', 'idempotent', 'once']).optional(),
  timeout_ms: timeoutMs.optional(),
  /** Of each tool that the name or pattern fits. */
  concurrency: concurrency.optional(),
  /** Arguments that name paths: `path` tools run together where these do not overlap. */
  path_args: z.array(z.string().min(1)).min(1).max(10).optional(),
  /** Folders that those paths must lie in, links resolved; relative ones count from the worker's own folder. */
  roots: z.array(z.string().min(1)).min(1).max(20).optional(),
  /** Who speaks when nobody knows whether a `once` call happened: the model is told so, or the run waits for a person. */
  on_unknown: z.enum(['report', 'ask']).optional(),
  /** Which calls wait for a person's word: none, all, all unless the tool is known to destroy nothing, or those whose argument matches. */
  approval: z.union([z.enum(['never', 'always', 'destructive']), z.strictObject({ when: z.strictObject({ arg: z.string().min(1).max(200), matches: pattern }) })],
    'expected "never", "always", "destructive" or { when: { arg, matches } } with a regular expression').optional(),
  /** How long; null: for ever. */
  approval_timeout_s: z.number().min(1).max(31_536_000).nullish(),
  /** What becomes of a call that nobody has decided about by then: it is denied, or the run ends. */
  on_approval_timeout: z.enum(['deny', 'expire']).optional(),
  /** How long progress that a tool reports may put off its time-out. Default: four times `timeout_ms`. */
  max_total_ms: timeoutMs.nullish(),
  /** Asked again and again on purpose: identical calls are no loop. */
  polling: z.boolean().optional(),
}).refine(({ roots, path_args }) => roots === undefined || path_args !== undefined, { path: ['path_args'], error: 'expected the arguments that name paths, beside roots' });

export const functionToolSchema = z.custom<FunctionTool>(isFunctionTool, 'expected what defineTool() returns');
