/**
 * Whether a call's arguments are such that a person has to approve of it.
 * The pattern is the operator's, the text a model's: together they may take for ever, so they get a moment, and then the answer is yes.
 */
import { Script, createContext } from 'node:vm';
import { canonicalJson, type ToolDefinition } from '@treadle/core';

/** V8 is told by a second thread to stop. */
const limitMs = 50;
const script = new Script('texts.some((text) => pattern.test(text))');
const scope: { pattern: RegExp; texts: readonly string[] } = { pattern: /(?:)/, texts: [] };
const context = createContext(scope);

export function asksFor({ approval }: ToolDefinition, input: Readonly<Record<string, unknown>>): boolean {
  if (approval === undefined) return false;
  if (approval.when === undefined) return true;
  const { arg, matches } = approval.when;
  if (!Object.hasOwn(input, arg)) return false;
  try {
    Object.assign(scope, { pattern: new RegExp(matches), texts: textsIn(input[arg]) });
    return script.runInContext(context, { timeout: limitMs, displayErrors: false }) === true;
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
