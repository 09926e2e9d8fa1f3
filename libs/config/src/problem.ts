/** What is wrong with a configuration, in words for people, with the place. */
import type { z } from 'zod';
import { limitForms } from './schema/limits.ts';

export interface ConfigProblem {
  /** Keys joined by dots, e.g. `agents.assistant.chain`; empty for the file as a whole. */
  readonly path: string;
  readonly problem: string;
}

/** Every issue of zod as one problem at its own path; an unknown key is reported at the key. */
export function problemsOf(error: z.ZodError): ConfigProblem[] {
  return error.issues.flatMap((issue) => problemsOfIssue(issue, []));
}

function problemsOfIssue(issue: z.core.$ZodIssue, above: readonly PropertyKey[]): ConfigProblem[] {
  const path = [...above, ...issue.path];
  if (issue.code === 'unrecognized_keys') return issue.keys.map((key) => ({ path: pathText([...path, key]), problem: 'unknown key' }));
  if (issue.code === 'invalid_key') {
    return [{ path: pathText(path), problem: `not a legal name: ${issue.issues.map((each) => each.message).join('; ')}` }];
  }
  if (issue.code === 'invalid_union') return unionProblems(issue, path);
  if (issue.code === 'invalid_type' && issue.input === undefined && issue.message.endsWith('received undefined')) {
    return [{ path: pathText(path), problem: `missing; ${lowerFirst(issue.message.replace(/^Invalid input: /, '').replace(/, received undefined$/, ''))}` }];
  }
  return [{ path: pathText(path), problem: lowerFirst(issue.message.replace(/^Invalid input: /, '')) }];
}

/** Of a limit, an object given is judged as a range, anything else as a value; other unions are told apart by their `type`. */
function unionProblems(issue: z.core.$ZodIssueInvalidUnion, path: readonly PropertyKey[]): ConfigProblem[] {
  if ('options' in issue && Array.isArray(issue.options)) return [{ path: pathText(path), problem: `expected ${issue.options.map(String).join(' or ')}` }];
  const inside = issue.errors.find((branch) => branch.some((each) => each.path.length > 0 || each.code === 'unrecognized_keys'));
  if (inside !== undefined) return inside.flatMap((each) => problemsOfIssue(each, path));
  return [{ path: pathText(path), problem: limitForms(String(path.at(-1))) }];
}

export function pathText(path: readonly PropertyKey[]): string {
  return path.map(String).join('.');
}

function lowerFirst(text: string): string {
  return text.charAt(0).toLowerCase() + text.slice(1);
}
