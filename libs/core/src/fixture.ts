/** Runs in the middle of their first turn, for the tests of this package. */
import type { AgentSpec, ToolDefinition } from './agent-spec.ts';
import { lookAhead } from './codec.ts';
import type { EventBody } from './events.ts';
import { defaultLimits, limitNames, type AgentLimits, type Limits } from './limits.ts';
import { initialState, type RunState } from './state.ts';
import type { Decision, ModelReply } from './turn-input.ts';
import { noUsage } from './usage.ts';

export interface Fixture {
  readonly limits?: Partial<Limits>;
  readonly spec?: Partial<AgentSpec>;
  readonly window?: number;
  /** Bodies behind the first turn's start. */
  readonly events?: readonly EventBody[];
}

export function fixture({ limits = {}, spec = {}, window = 1000, events = [] }: Fixture = {}): RunState {
  const tools = [tool('look'), tool('write', { effect: 'once', parallel: 'serial' }), tool('poll', { polling: true })];
  return lookAhead({ ...initialState, run_id: 'run_x' }, [
    {
      type: 'run_created', rules: 2, agent: 'a', agent_version: 'v', session_id: 's', parent_run_id: null, forked_from: null, tenant: 't', limits: { ...defaultLimits, ...limits },
      chain: 'c', tools: ['*'], metadata: {}, tags: [], priority: 50, run_at: null, agent_spec: { ...specWith(window), ...spec },
    },
    { type: 'user_message', content: 'hi' }, { type: 'state_change', old: 'queued', new: 'running', reason: 'claimed' },
    { type: 'tools_changed', tools, problems: [], done: 'pinned' }, { type: 'turn_start', attempt: 1, worker: 'w' }, ...events,
  ]);
}

function specWith(window: number): AgentSpec {
  return {
    name: 'a', soul: 'I am A.', instructions: 'Do.', tools: ['*'], protocol: 'native', validators: [], stop_hooks: [],
    limits: Object.fromEntries(limitNames.map((name) => [name, { default: defaultLimits[name], max: defaultLimits[name] }])) as unknown as AgentLimits,
    chain: { name: 'c', models: [model('m1', window), model('m2', window * 4)] },
  };
}

export function model(name: string, context_window: number) {
  return { name, provider: 'p', model: name, context_window, max_output_tokens: 100, supports_tools: true, supports_images: false };
}

export function tool(name: string, over: Partial<ToolDefinition> = {}): ToolDefinition {
  return { name, wire_name: name, description: '', input_schema: {}, effect: 'read', parallel: 'parallel', timeout_ms: 1, hash: name, ...over };
}

export function reply(over: Partial<ModelReply> = {}): ModelReply {
  return { text: '', thinking: '', provider_data: null, calls: [], finish: 'stop', finish_raw: 'stop', usage: noUsage, ...over };
}

/** The state after a decision: also that every event of it is accepted (C2). */
export function fold(state: RunState, decision: Decision): RunState {
  return lookAhead(state, decision.events);
}

/** The next turn begun. */
export function turnOf(state: RunState): RunState {
  return lookAhead(state, [{ type: 'turn_start', attempt: 1, worker: 'w' }]);
}
