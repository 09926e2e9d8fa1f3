/** A small agent for tests: two tools, one model, the default limits. */
import { defaultLimits, limitNames, type AgentLimits, type AgentSpec, type LimitName, type ToolDefinition } from '@treadle/core';

export function testSpec(over: Partial<AgentSpec> = {}): AgentSpec {
  return {
    name: 'tester', soul: null, instructions: 'Be brief.', tools: ['*'], limits: agentLimits(), protocol: 'native', validators: [], stop_hooks: [],
    chain: { name: 'default', models: [testModel('small')] }, ...over,
  };
}

export function testModel(name: string) {
  return { name, provider: 'scripted', model: name, context_window: 8192, max_output_tokens: 1024, supports_tools: true, supports_images: false };
}

/** Every limit with its default as the maximum, but for those named. */
export function agentLimits(over: Partial<Record<LimitName, number>> = {}): AgentLimits {
  return Object.fromEntries(limitNames.map((name) => {
    const value = over[name] ?? defaultLimits[name];
    return [name, { default: value, max: value }];
  })) as unknown as AgentLimits;
}

export function testTool(name: string, over: Partial<ToolDefinition> = {}): ToolDefinition {
  return {
    name, wire_name: name, description: `The tool ${name}.`, input_schema: { type: 'object' }, effect: 'read', parallel: 'parallel', timeout_ms: 1000,
    hash: `sha256:${name}`, ...over,
  };
}
