/** The test tools as function tools, of the shape that `defineTool` returns (stated here, since testkit imports no adapter). */
import { writeLedger, type LedgerLine, type LedgerPhase } from './ledger.ts';
import { testTools, type TestTool } from './tool-table.ts';

export interface LedgerToolContext {
  readonly signal: AbortSignal;
  readonly idempotency_key: string;
  readonly epoch: number;
  readonly run_id: string;
  readonly tool_use_id: string;
}

export interface LedgerTool {
  readonly kind: 'function';
  readonly name: string;
  readonly description: string;
  readonly input_schema: Readonly<Record<string, unknown>>;
  readonly effect: 'read' | 'once';
  readonly parallel: 'parallel' | 'serial';
  readonly timeout_ms: number | null;
  readonly run: (input: Readonly<Record<string, unknown>>, context: LedgerToolContext) => Promise<string>;
}

/** All but `crash`, which would end the test's own process, recording into `file`. */
export function ledgerTools(file: string): LedgerTool[] {
  return testTools.filter((tool) => tool.name !== 'crash').map((tool) => ({
    kind: 'function', name: tool.name, description: tool.description, input_schema: tool.input_schema, effect: tool.effect,
    parallel: tool.effect === 'read' ? 'parallel' : 'serial', timeout_ms: null,
    run: (input, context) => runRecorded(tool, input, { file, signal: context.signal, identity: context }),
  }));
}

export type CallIdentity = Pick<LedgerLine, 'run_id' | 'tool_use_id' | 'idempotency_key' | 'epoch'>;

export interface Recording {
  readonly file: string;
  readonly signal: AbortSignal;
  readonly identity: CallIdentity;
}

/** Runs one test tool between its two lines; a failure of its own ends it too, an abort is recorded as `cancelled`. */
export async function runRecorded(tool: TestTool, input: Readonly<Record<string, unknown>>, { file, signal, identity }: Recording): Promise<string> {
  const write = (phase: LedgerPhase): void => {
    const { run_id, tool_use_id, idempotency_key, epoch } = identity;
    writeLedger(file, { ts: Date.now(), phase, tool: tool.name, run_id, tool_use_id, idempotency_key, epoch, input });
  };
  write('start');
  try {
    return await tool.run(input, signal);
  } finally {
    write(signal.aborted ? 'cancelled' : 'end');
  }
}
