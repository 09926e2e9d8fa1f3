/**
 * What a run is made by, pinned when it is created: a worker acts by this, not by its own configuration of the day.
 * Holds no secret and no address: the worker finds those by the model's name.
 */
import type { AgentLimits } from './limits.ts';

export interface AgentSpec {
  readonly name: string;
  /** Who the agent is; stands before the instructions in the system message. */
  readonly soul: string | null;
  readonly instructions: string;
  readonly chain: ChainSpec;
  /** Patterns of tool names, e.g. `files/*`. */
  readonly tools: readonly string[];
  readonly limits: AgentLimits;
  /** `json_action`: the model answers with one JSON object instead of calling tools. */
  readonly protocol: 'native' | 'json_action';
  /** What an answer must be, in order. */
  readonly validators: readonly ValidatorSpec[];
  /** What may keep a text answer from ending the run, in order. */
  readonly stop_hooks: readonly HookSpec[];
  /** The agents that it may start as sub-agents; absent: none. */
  readonly subagents?: readonly SubagentSpec[];
}

/** A sub-agent as the model is shown it. It is made by the configuration of the worker that starts it. */
export interface SubagentSpec { readonly name: string; readonly description: string }

/** `enforce`: the model tries again; `report`: the run says so in `checks`. Functions are found by name in the configuration. */
export type ValidatorSpec = { readonly name: string; readonly mode: 'enforce' | 'report' } & (
  | { readonly type: 'json_schema'; readonly schema: Readonly<Record<string, unknown>> }
  | { readonly type: 'regex'; readonly pattern: string; readonly feedback: string }
  | { readonly type: 'function' });

export type HookDecision = 'stop' | 'extra_turn' | 'continue';

export type HookSpec = { readonly name: string } & (
  | { readonly type: 'regex'; readonly pattern: string; readonly decision: HookDecision; readonly prompt: string }
  | { readonly type: 'function' });

/** The ordered models of an agent. Never empty. */
export interface ChainSpec {
  readonly name: string;
  readonly models: readonly ModelSpec[];
  /** Where one of the models is on trial. */
  readonly canary?: CanaryPin;
}

/** A run's part in the trial of a new model: pinned when the run is created, and never changed by where the trial has got to since. */
export interface CanaryPin {
  /** The model's name; it stands in `models`, too: first in the arm `canary`, last in `control`. */
  readonly model: string;
  readonly arm: CanaryArm;
  /** Percent of new runs that began on the model when this one was created. */
  readonly stage: number;
}

export type CanaryArm = 'canary' | 'control';

export interface ModelSpec {
  /** The name in the configuration; what events and metrics call it. */
  readonly name: string;
  readonly provider: string;
  /** The provider's own name for it. */
  readonly model: string;
  /** Tokens. */
  readonly context_window: number;
  /** Tokens. */
  readonly max_output_tokens: number;
  readonly supports_tools: boolean;
  readonly supports_images: boolean;
}

/** What a second call may do that the first has done: nothing (`read`), nothing with the same key (`idempotent`), harm (`once`). */
export type EffectClass = 'read' | 'idempotent' | 'once';

/** What may run beside it: other parallel ones, other paths, nothing. */
export type ParallelClass = 'parallel' | 'path' | 'serial';

/** Who speaks when nobody knows whether a call happened: the host tells the model so, or the run waits for a person. */
export type OnUnknown = 'report' | 'ask';

/** A call of the tool needs a person's word before it is begun. */
export interface ApprovalRule {
  /** Only where this argument matches; absent: every call. Of an argument that is a list, any part of it. */
  readonly when?: { readonly arg: string; readonly matches: string };
  /** How long the word is waited for; null: for ever. */
  readonly timeout_s: number | null;
  /** What becomes of a call that nobody has decided about by then: it is denied, or the run ends. */
  readonly on_timeout: 'deny' | 'expire';
}

/** The tools that are part of the host. */
export const builtinTools = ['spawn_agent', 'ask_user'] as const;
export type BuiltinTool = (typeof builtinTools)[number];

/** A tool as the run knows it from its first claim on; the definition does not change under a run. */
export interface ToolDefinition {
  /** `server/tool` for MCP, the plain name for functions. */
  readonly name: string;
  /** Legal for every provider: letters, digits, `_`, `-`, 1 to 64. */
  readonly wire_name: string;
  readonly description: string;
  /** JSON Schema of the arguments; always an object schema. */
  readonly input_schema: Readonly<Record<string, unknown>>;
  readonly effect: EffectClass;
  readonly parallel: ParallelClass;
  readonly timeout_ms: number;
  /** How long reported progress may put the time-out off. Absent: four times `timeout_ms`. */
  readonly max_total_ms?: number;
  /** Of `path`: the arguments that name what it reads or writes. */
  readonly path_args?: readonly string[];
  /** Asked again and again on purpose: identical calls are no loop. */
  readonly polling?: boolean;
  /** Absent: `report`. */
  readonly on_unknown?: OnUnknown;
  /** Absent: never asked for. */
  readonly approval?: ApprovalRule;
  /** Carried out by the run itself, not by a tool: another run is started, a person is asked. */
  readonly builtin?: BuiltinTool;
  /** `sha256:` and the hash of what the model is shown of it. */
  readonly hash: string;
}
