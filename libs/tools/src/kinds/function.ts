/** Tools that are functions of this program. */
import { errorText } from '../call/run-call.ts';
import { mediaTypeOf } from '../content/media.ts';
import { observed } from '../content/observed.ts';
import type { CallEnd, ToolKind } from '../kind.ts';
import type { FunctionToolSource } from '../sources.ts';

export function createFunctionKind(functions: readonly FunctionToolSource[]): ToolKind {
  const byName = new Map(functions.map((tool) => [tool.name, tool]));
  return {
    owns: (name) => byName.has(name),
    offered: async () => [{ tools: functions, problems: [], missing: [] }],
    async call(run, window) {
      const tool = byName.get(run.tool.name);
      if (tool === undefined) return { type: 'not_started', why: `This worker has no tool named ${run.tool.name}.` };
      const { idempotency_key, epoch, run_id, tool_use_id } = run;
      window.begin();
      try {
        // A copy: what a function does to its arguments must not reach the run's own record of them.
        const value = await tool.run(structuredClone(run.input), { signal: window.signal, idempotency_key, epoch, run_id, tool_use_id, progress: () => { window.progress(); } });
        return answer(value);
      } catch (error) {
        return { type: 'answered', content: errorText(error), is_error: true };
      }
    },
    close: async () => {},
  };
}

/** A string as it is, bytes as what they are, anything else as JSON. A result that cannot be written is an error of the tool, which did run. */
function answer(value: unknown): CallEnd {
  if (typeof value === 'string') return { type: 'answered', content: value, is_error: false };
  const bytes = bytesOf(value);
  if (bytes !== null) return { type: 'answered', ...observed(bytes, mediaTypeOf(null)), is_error: false };
  try {
    return { type: 'answered', content: JSON.stringify(value) ?? '(no result)', is_error: false };
  } catch (error) {
    return { type: 'answered', content: `The tool ran, but its result cannot be written as JSON: ${errorText(error)}`, is_error: true };
  }
}

/** As JSON they would be `{}`, or a long list of numbers by their places. */
function bytesOf(value: unknown): Uint8Array | null {
  if (value instanceof Uint8Array) return value;
  if (ArrayBuffer.isView(value)) return new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
  return value instanceof ArrayBuffer ? new Uint8Array(value) : null;
}
