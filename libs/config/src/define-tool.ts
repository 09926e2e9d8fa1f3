/** Tools that are functions of the user's own program. */
import type { EffectClass, ParallelClass } from '@treadle/core';
import { z } from 'zod';

/** What a tool function is told beside its arguments. */
export interface ToolContext {
  /** Aborts when the call has timed out or its run was interrupted; a function that goes on is left behind after 2 s. */
  readonly signal: AbortSignal;
  /** The same for every attempt of this call: hand it to whatever can refuse a repeat. */
  readonly idempotency_key: string;
  /** The fencing number: never smaller for a later attempt. */
  readonly epoch: number;
  readonly run_id: string;
  readonly tool_use_id: string;
  /**
   * A sign of life, as MCP's progress notification is: `timeout_ms` begins anew, up to `max_total_ms` of the call (four times as long, unless
   * the host's `tools` says otherwise). How far the call is may be said as in MCP; it is not kept. Never throws; after the call has ended it does nothing.
   */
  readonly progress: (progress?: number, total?: number, message?: string) => void;
}

/** A tool as the tool runner takes it. */
export interface FunctionTool {
  readonly kind: 'function';
  readonly name: string;
  readonly description: string;
  /** JSON Schema of the arguments. */
  readonly input_schema: Readonly<Record<string, unknown>>;
  readonly effect: EffectClass;
  readonly parallel: ParallelClass;
  /** Null: the default of the tool runner (30 s). */
  readonly timeout_ms: number | null;
  /** Calls at once per worker process; null: any number. */
  readonly concurrency: number | null;
  readonly run: (input: Readonly<Record<string, unknown>>, context: ToolContext) => unknown;
}

interface ToolOptions {
  /** 1 to 64 letters, digits, `_` or `-`. */
  readonly name: string;
  readonly description: string;
  /** What a second call may do that the first has done. Default `once`: it is never repeated blindly. */
  readonly effect?: EffectClass;
  /** What may run beside it. Default `serial`: nothing. */
  readonly parallel?: ParallelClass;
  /** 1 to 2,147,483,647; default 30,000. */
  readonly timeout_ms?: number;
  /** How many calls of it may run at once in one worker process, over all runs: 1 to 1000. Default: any number. */
  readonly concurrency?: number;
}

/** With a zod schema: `run` gets what the schema makes of the arguments. */
export interface ZodToolOptions<Input extends z.ZodType> extends ToolOptions {
  readonly input: Input;
  readonly run: (input: z.output<Input>, context: ToolContext) => unknown;
}

/** With a JSON Schema of an object: `run` gets the arguments as they are, already checked against it. */
export interface JsonToolOptions extends ToolOptions {
  readonly input: Readonly<Record<string, unknown>>;
  readonly run: (input: Readonly<Record<string, unknown>>, context: ToolContext) => unknown;
}

const legalName = /^[A-Za-z0-9_-]{1,64}$/;

/**
 * A tool from a function. What `run` returns goes to the model: a string as it is, anything else as JSON; what it throws
 * is an error the model reads.
 *
 * @throws TypeError where a name, schema or number could never work: that is a mistake in the program.
 */
export function defineTool<Input extends z.ZodType>(options: ZodToolOptions<Input>): FunctionTool;
export function defineTool(options: JsonToolOptions): FunctionTool;
export function defineTool(options: ZodToolOptions<z.ZodType> | JsonToolOptions): FunctionTool {
  const { name, description, timeout_ms = null, concurrency = null } = options;
  if (!legalName.test(name)) throw new TypeError(`tool name "${name}": expected 1 to 64 letters, digits, "_" or "-"`);
  if (timeout_ms !== null && !(Number.isInteger(timeout_ms) && timeout_ms > 0 && timeout_ms <= 2_147_483_647)) {
    throw new TypeError(`tool "${name}": timeout_ms must be a whole number from 1 to 2147483647`);
  }
  if (concurrency !== null && !(Number.isInteger(concurrency) && concurrency > 0 && concurrency <= 1000)) {
    throw new TypeError(`tool "${name}": concurrency must be a whole number from 1 to 1000`);
  }
  const common = { kind: 'function', name, description, effect: options.effect ?? 'once', parallel: options.parallel ?? 'serial', timeout_ms, concurrency } as const;
  if (!isZod(options.input)) return { ...common, input_schema: objectSchema(name, options.input), run: (options as JsonToolOptions).run };
  const { input, run } = options as ZodToolOptions<z.ZodType>;
  const { $schema: _draft, ...schema } = z.toJSONSchema(input, { io: 'input', unrepresentable: 'any' });
  return { ...common, input_schema: objectSchema(name, schema), run: async (given, context) => run(await input.parseAsync(given), context) };
}

/** Whether a value came from `defineTool` (this copy of the package or another). */
export function isFunctionTool(value: unknown): value is FunctionTool {
  if (typeof value !== 'object' || value === null) return false;
  const tool = value as Partial<FunctionTool>;
  return tool.kind === 'function' && typeof tool.name === 'string' && typeof tool.run === 'function' && typeof tool.input_schema === 'object';
}

function isZod(input: unknown): input is z.ZodType {
  return typeof input === 'object' && input !== null && '_zod' in input;
}

function objectSchema(name: string, schema: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  if (schema.type !== 'object') throw new TypeError(`tool "${name}": input must be an object schema`);
  // A copy by JSON: it is hashed, stored and sent, so what JSON cannot hold must fail here.
  return JSON.parse(JSON.stringify(schema)) as Record<string, unknown>;
}
