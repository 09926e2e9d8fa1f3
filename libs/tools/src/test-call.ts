/** For the tests beside: one call as the engine would make it. */
import type { ToolDefinition } from '@treadle/core';
import type { ToolRun } from '@treadle/engine';

let calls = 0;

/** A call of `tool` with ids of its own; never aborted unless a signal is given. */
export function callOf(tool: ToolDefinition, input: Readonly<Record<string, unknown>>, signal = new AbortController().signal): ToolRun {
  calls += 1;
  return { run_id: 'run_1', tool, input, tool_use_id: `call_${calls}`, idempotency_key: `run_1-call_${calls}`, epoch: 7, signal };
}
