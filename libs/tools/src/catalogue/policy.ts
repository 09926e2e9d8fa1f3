/** The host's word on a tool: of the patterns that fit, the more exact one counts for each field. */
import type { ToolPolicySource } from '../sources.ts';
import { matches } from './patterns.ts';

/** Exact names before patterns, longer patterns before shorter ones. */
export function policyFor(policies: Readonly<Record<string, ToolPolicySource>>, name: string): ToolPolicySource {
  const fitting = Object.entries(policies).filter(([pattern]) => matches(pattern, name)).sort(([a], [b]) => exactness(a) - exactness(b) || (a < b ? -1 : 1));
  return Object.assign({}, ...fitting.map(([, policy]) => policy)) as ToolPolicySource;
}

function exactness(pattern: string): number {
  return pattern.includes('*') ? pattern.length : Number.MAX_SAFE_INTEGER;
}
