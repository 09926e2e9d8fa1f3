/**
 * How many calls of one tool run at once in this process, where the host bounds that. Owns the slots of each such tool, made when it is
 * first called; all runs share them.
 */
import { policyFor } from '../catalogue/policy.ts';
import type { ToolSources } from '../sources.ts';
import { createSlots, type Slots } from './slots.ts';

/** The slots of a tool by its name; null where nothing bounds it. What `tools` says counts before what stands with the tool. */
export function createToolSlots({ functions, httpTools = {}, policies }: Pick<ToolSources, 'functions' | 'httpTools' | 'policies'>): (name: string) => Slots | null {
  const own = new Map([...functions, ...Object.entries(httpTools).map(([name, { concurrency }]) => ({ name, concurrency }))].map(({ name, concurrency }) => [name, concurrency ?? null]));
  const made = new Map<string, Slots>();
  return (name) => {
    const size = policyFor(policies, name).concurrency ?? own.get(name) ?? null;
    if (size === null) return null;
    const slots = made.get(name) ?? createSlots(size);
    made.set(name, slots);
    return slots;
  };
}
