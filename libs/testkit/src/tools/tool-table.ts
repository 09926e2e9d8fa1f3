/** The test tools themselves: one table, served over MCP by `mcp-server.ts` and as functions by `ledger-tools.ts`. */
import { setTimeout as pause } from 'node:timers/promises';

export interface TestTool {
  readonly name: string;
  readonly description: string;
  readonly input_schema: { readonly type: 'object' } & Readonly<Record<string, unknown>>;
  readonly effect: 'read' | 'once';
  /** Rejects where the tool fails or was stopped. */
  readonly run: (input: Readonly<Record<string, unknown>>, signal: AbortSignal) => Promise<string>;
}

type Properties = Readonly<Record<string, { readonly type: string }>>;

function objectSchema(properties: Properties): TestTool['input_schema'] {
  return { type: 'object', properties, required: Object.keys(properties), additionalProperties: false };
}

function tool(name: string, effect: 'read' | 'once', properties: Properties, run: TestTool['run']): TestTool {
  return { name, description: `Test tool ${name}.`, input_schema: objectSchema(properties), effect, run };
}

const number = { type: 'number' };
const text = { type: 'string' };

/** `crash` ends the process it runs in, after its start was recorded. */
export const testTools: readonly TestTool[] = [
  tool('add', 'read', { a: number, b: number }, async ({ a, b }) => String(Number(a) + Number(b))),
  tool('touch', 'once', { name: text }, async ({ name }) => `touched ${String(name)}`),
  tool('append_row', 'once', { v: text }, async ({ v }) => `appended ${String(v)}`),
  tool('slow_lookup', 'read', { ms: number }, async ({ ms }, signal) => {
    await pause(Number(ms), undefined, { signal });
    return `found after ${String(ms)} ms`;
  }),
  tool('slow_write', 'once', { ms: number }, async ({ ms }, signal) => {
    await pause(Number(ms), undefined, { signal });
    return `written after ${String(ms)} ms`;
  }),
  tool('fail', 'read', {}, async () => { throw new Error('failed on purpose'); }),
  tool('crash', 'once', {}, async () => process.exit(1)),
  tool('big', 'read', { bytes: number }, async ({ bytes }) => 'x'.repeat(Number(bytes))),
  tool('emoji', 'read', {}, async () => '👩‍👩‍👧‍👦 🎉 é ü 漢字 🇨🇭'),
  // Half of a pair: what a program that cuts strings by code units returns.
  tool('surrogate', 'read', {}, async () => 'half \ud83d of a character'),
];
