/**
 * The arguments of a tool call as servers really send them: an object; JSON text of one, encoded once or twice; or nothing.
 * What is no object is told to the model, and the tool is not run.
 */
import { inexactProblem, oversizedInput, parseExactly, wellFormed, type ToolDefinition } from '@treadle/core';

export interface ReadArguments {
  readonly input: Readonly<Record<string, unknown>>;
  /** For the model to read; null when the arguments can be used. */
  readonly problem: string | null;
}

/** How often JSON text may be wrapped in JSON text. */
const encodings = 2;

/** `tool` is the called one where it is known: nothing stands for `{}` unless it requires something. */
export function readArguments(raw: unknown, tool: ToolDefinition | undefined): ReadArguments {
  let value = raw;
  for (let unwrapped = 0; unwrapped < encodings && typeof value === 'string' && value.trim() !== ''; unwrapped += 1) {
    const parsed = parse(value);
    if (parsed === undefined) return unusable(`The arguments are not valid JSON: ${excerpt(value)}`);
    value = parsed;
  }
  if (value === undefined || value === null || (typeof value === 'string' && value.trim() === '')) return nothing(tool);
  if (typeof value !== 'object' || Array.isArray(value)) {
    return unusable(`The arguments must be a JSON object, not ${Array.isArray(value) ? 'a list' : `a ${typeof value}`}: ${excerpt(JSON.stringify(value))}`);
  }
  // Before anything is cut: what is left of arguments is not what the model sent.
  const oversized = oversizedInput(value as Record<string, unknown>);
  if (oversized !== null) return unusable(oversized);
  const inexact = inexactProblem(value);
  if (inexact !== null) return unusable(inexact);
  return { input: wellFormed(value as Record<string, unknown>), problem: null };
}

function nothing(tool: ToolDefinition | undefined): ReadArguments {
  const required: unknown = tool?.input_schema['required'];
  if (!Array.isArray(required) || required.length === 0) return { input: {}, problem: null };
  return unusable(`The arguments are missing. Required: ${required.map(String).join(', ')}.`);
}

function unusable(problem: string): ReadArguments {
  return { input: {}, problem: problem.toWellFormed() };
}

function parse(text: string): unknown {
  try {
    return parseExactly(text);
  } catch {
    return undefined;
  }
}

function excerpt(text: string): string {
  return text.length > 200 ? `${text.slice(0, 200).toWellFormed()} …` : text;
}
