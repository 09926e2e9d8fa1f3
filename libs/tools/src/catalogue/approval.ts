/** Which calls of a tool a person has to approve of, as the run is pinned to it. */
import type { ToolDefinition } from '@treadle/core';
import type { OfferedTool } from '../kind.ts';
import type { ToolPolicySource } from '../sources.ts';

export function approvalOf(tool: OfferedTool, policy: ToolPolicySource): Pick<ToolDefinition, 'approval'> {
  const { approval = 'never' } = policy;
  if (approval === 'never' || (approval === 'destructive' && !isDestructive(tool, policy))) return {};
  // What cannot be looked at is asked for each time.
  const when = typeof approval === 'object' && !lacksArgument(tool, approval.when.arg) ? { when: approval.when } : {};
  return { approval: { ...when, timeout_s: policy.approval_timeout_s ?? null, on_timeout: policy.on_approval_timeout ?? 'deny' } };
}

/** Unless the host says that it only reads, or a source that may say so that nothing is destroyed. A host that says `once` is believed first. */
function isDestructive(tool: OfferedTool, { effect }: ToolPolicySource): boolean {
  if ((effect ?? tool.effect) === 'read') return false;
  return effect === 'once' || tool.destructive !== false;
}

/** A schema that lists its properties, and not this one. */
function lacksArgument({ input_schema }: OfferedTool, arg: string): boolean {
  const { properties } = input_schema as { readonly properties?: unknown };
  return typeof properties === 'object' && properties !== null && !Object.hasOwn(properties, arg);
}

/** A rule about an argument that is not there is most likely a typing error. */
export function approvalProblem(tool: OfferedTool, { approval }: ToolPolicySource): string[] {
  if (typeof approval !== 'object' || !lacksArgument(tool, approval.when.arg)) return [];
  return [`Every call of ${tool.name} needs approval: it has no argument "${approval.when.arg.slice(0, 100)}" that could be looked at.`];
}
