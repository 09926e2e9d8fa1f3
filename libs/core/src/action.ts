/**
 * `protocol: json_action`: for models without tool calling. The reply is one JSON object, alone, in a code fence or after prose.
 * Text that cannot be read as one never becomes an answer.
 */
import type { ToolDefinition } from './agent-spec.ts';
import { inexactProblem, parseExactly } from './exact-json.ts';
import { oversizedInput } from './tool-call.ts';

export type Action =
  /** `problem`: why the arguments cannot be used, for the model to read. */
  | { readonly type: 'call'; readonly name: string; readonly input: Readonly<Record<string, unknown>>; readonly problem?: string }
  | { readonly type: 'answer'; readonly text: string }
  | { readonly type: 'problem'; readonly error_type: 'json_syntax' | 'missing_field' | 'unknown_skill'; readonly feedback: string };

export function parseAction(text: string, tools: readonly ToolDefinition[]): Action {
  const object = firstObject(text);
  if (object === null) {
    return { type: 'problem', error_type: 'json_syntax', feedback: `Your reply must be one JSON object: ${forms}. It could not be read as JSON.` };
  }
  if (typeof object['skill_name'] === 'string') return callOf(object['skill_name'], object['arguments'], tools);
  if (typeof object['final_answer'] === 'string') return { type: 'answer', text: object['final_answer'] };
  if (object['final_answer'] !== undefined && object['final_answer'] !== null) return { type: 'answer', text: JSON.stringify(object['final_answer']) };
  return { type: 'problem', error_type: 'missing_field', feedback: `Your reply must have the field "skill_name" or "final_answer": ${forms}.` };
}

const forms = '{"skill_name": "…", "arguments": {…}} to use a skill, or {"final_answer": "…"} to answer';

function callOf(name: string, given: unknown, tools: readonly ToolDefinition[]): Action {
  const tool = tools.find((each) => each.wire_name === name || each.name === name);
  if (tool === undefined) {
    const names = tools.map((each) => each.wire_name).join(', ');
    return { type: 'problem', error_type: 'unknown_skill', feedback: `There is no skill named "${name.slice(0, 100)}". Skills: ${names === '' ? 'none' : names}.` };
  }
  const input = given === undefined || given === null ? {} : given;
  if (typeof input !== 'object' || Array.isArray(input)) return { type: 'problem', error_type: 'missing_field', feedback: '"arguments" must be a JSON object.' };
  const problem = oversizedInput(input as Record<string, unknown>) ?? inexactProblem(input);
  return problem === null ? { type: 'call', name: tool.wire_name, input: input as Record<string, unknown> } : { type: 'call', name: tool.wire_name, input: {}, problem };
}

/** The last whole JSON object of the text: prose and thinking come before it, a fence may stand round it. */
function firstObject(text: string): Record<string, unknown> | null {
  const whole = parsed(text.trim());
  if (whole !== null) return whole;
  let found: Record<string, unknown> | null = null;
  for (let start = text.indexOf('{'), tries = 0; start >= 0 && tries < 200; tries++) {
    const end = objectEnd(text, start);
    const object = end < 0 ? null : parsed(text.slice(start, end));
    if (object !== null) found = object;
    start = text.indexOf('{', object === null ? start + 1 : end);
  }
  return found;
}

function parsed(text: string): Record<string, unknown> | null {
  try {
    const value = parseExactly(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? value as Record<string, unknown> : null;
  } catch {
    return null;
  }
}

/** Where the object that begins at `start` ends, -1 where it does not. Braces in strings do not count. */
function objectEnd(text: string, start: number): number {
  let depth = 0;
  let quoted = false;
  for (let index = start; index < text.length; index++) {
    const character = text[index];
    if (quoted) {
      if (character === '\\') index++;
      else if (character === '"') quoted = false;
    } else if (character === '"') quoted = true;
    else if (character === '{') depth++;
    else if (character === '}' && --depth === 0) return index + 1;
  }
  return -1;
}

/** How the protocol is explained to the model, from the tools' schemas. */
export function actionPrompt(tools: readonly ToolDefinition[]): string {
  const skills = tools.map((tool) => `- ${tool.wire_name}: ${tool.description}\n  arguments: ${JSON.stringify(tool.input_schema)}`);
  return [
    'Reply with exactly one JSON object and nothing else.',
    'To use a skill: {"skill_name": "<name>", "arguments": {<its arguments>}}',
    'To give the final answer: {"final_answer": "<your answer>"}',
    skills.length === 0 ? 'There are no skills.' : `The skills:\n${skills.join('\n')}`,
  ].join('\n');
}
