/**
 * Whether a call's arguments are such that a person has to approve of it. Where that cannot be found out in a moment the answer is yes.
 */
import { canonicalJson, type ToolDefinition } from '@treadle/core';
import type { InTime } from './in-time.ts';

const limitMs = 50;

export function asksFor(inTime: InTime, { approval }: ToolDefinition, input: Readonly<Record<string, unknown>>): boolean {
  if (approval === undefined) return false;
  if (approval.when === undefined) return true;
  const { arg, matches } = approval.when;
  if (!Object.hasOwn(input, arg)) return false;
  try {
    const pattern = new RegExp(matches);
    const texts = textsIn(input[arg]);
    const look = inTime(`approval ${matches}`, limitMs, () => ({ found: texts.some((text) => pattern.test(text)) }));
    return typeof look === 'string' || look.found;
  } catch {
    return true;
  }
}

/** A text as it is, anything else as JSON; of a list each part, and the list. */
function textsIn(value: unknown): string[] {
  if (!Array.isArray(value)) return [textOf(value)];
  return [...value.map(textOf), textOf(value)];
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : canonicalJson(value);
}
