/**
 * Pure rules about tool calls: their identity, what may run together, and what a delivery may do with a call that an
 * earlier delivery may have begun.
 */
import type { EffectClass, ParallelClass, ToolDefinition } from './agent-spec.ts';
import type { EventBody } from './events.ts';
import { plainName } from './plain-name.ts';
import type { RunState } from './state.ts';
import type { ReplyCall } from './turn-input.ts';
import { utf8Length, wellFormed } from './well-formed.ts';

const legalId = /^[a-zA-Z0-9_-]{1,64}$/;

/** The `tool_use` events of a reply: ids given, names mapped back, invalid calls marked. */
export function toolUses(state: RunState, calls: readonly ReplyCall[]): (EventBody & { type: 'tool_use' })[] {
  const tools = state.tools ?? [];
  const used = usedIds(state);
  return calls.map((call, index) => {
    const tool = tools.find((each) => each.wire_name === call.name || each.name === call.name);
    const oversized = oversizedInput(call.input);
    const invalid = tool === undefined ? missingTool(call.name, state) : oversized ?? call.problem;
    const tool_use_id = identify(call.provider_id, `call_t${state.turn_number}_${index}`, used);
    return {
      type: 'tool_use', tool_name: tool?.name ?? call.name.toWellFormed().slice(0, 200).toWellFormed(),
      tool_input: oversized === null ? wellFormed(call.input) : {}, tool_use_id, provider_id: call.provider_id?.slice(0, 200).toWellFormed() ?? null,
      execution: executionOf(tool), ...(invalid === null ? {} : { invalid }),
    };
  });
}

/**
 * The provider's id where it is legal everywhere and new in this run; else one made from turn and position, so that the
 * same reply gets the same ids. Never random, never reused: the ledger is keyed by it.
 */
function identify(provider_id: string | null, made: string, used: Set<string>): string {
  let id = provider_id !== null && legalId.test(provider_id) && !used.has(provider_id) ? provider_id : made;
  while (used.has(id)) id = `${id}_`;
  used.add(id);
  return id;
}

function usedIds(state: RunState): Set<string> {
  const used = new Set(state.retired_ids);
  for (const message of state.transcript.messages) {
    if (message.role === 'assistant') for (const call of message.calls) used.add(call.tool_use_id);
  }
  return used;
}

function missingTool(name: string, { tools: offered, tool_news }: RunState): string {
  const tools = offered ?? [];
  const gone = tool_news?.gone.some((each) => each === name || plainName(each) === name) === true;
  const names = tools.map((tool) => tool.wire_name).join(', ');
  const said = name.toWellFormed().slice(0, 100).toWellFormed();
  return `${gone ? `The tool "${said}" is no longer available.` : `There is no tool named "${said}".`} Available: ${names === '' ? 'none' : names}.`;
}

/** Bytes of JSON that the arguments of one call may have, and how deep they may be nested. */
const largestInput = 256 * 1024;
const deepestInput = 64;

/** Why arguments are not even kept: cut to size, they would not be what was sent. Null where they are. */
export function oversizedInput(input: Readonly<Record<string, unknown>>): string | null {
  if (depthOf(input, deepestInput + 1) > deepestInput) return `The arguments are nested deeper than ${deepestInput} levels.`;
  const bytes = utf8Length(JSON.stringify(input));
  return bytes > largestInput ? `The arguments are ${bytes} bytes long; at most ${largestInput} are allowed.` : null;
}

/** How deep `value` is nested, as far as `most`. */
function depthOf(value: unknown, most: number): number {
  if (value === null || typeof value !== 'object' || most === 0) return 0;
  return 1 + Object.values(value).reduce((deepest: number, each) => Math.max(deepest, depthOf(each, most - 1)), 0);
}

/** A tool nobody knows is a barrier. */
function executionOf(tool: ToolDefinition | undefined): ParallelClass {
  return tool?.parallel ?? 'serial';
}

/** What the ledger knows of a call. */
export interface LedgerEntry {
  readonly tool_use_id: string;
  readonly tool_name: string;
  readonly status: 'started' | 'settled';
  /** The claim that started it, and that settled it. */
  readonly started_epoch: number;
  readonly settled_epoch: number | null;
  readonly idempotency_key: string;
  readonly effect: EffectClass;
  readonly outcome: string | null;
}

/**
 * What this claim may do with a call: `run` (begin it first), `repeat` (begin again, same idempotency key) or report it
 * `in_doubt`. A settled call never gets here: its result is in the log.
 */
export function ledgerVerdict(effect: EffectClass, entry: LedgerEntry | undefined, epoch: number): 'run' | 'go' | 'repeat' | 'in_doubt' {
  if (entry === undefined) return 'run';
  if (entry.started_epoch === epoch) return 'go';
  return effect === 'once' ? 'in_doubt' : 'repeat';
}

/** The same for every attempt of a call, different for every call. */
export function idempotencyKey(run_id: string, tool_use_id: string): string {
  return `${run_id}-${tool_use_id}`;
}
