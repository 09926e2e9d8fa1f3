/** What zod found, as lines that name the field. */
import type { z } from 'zod';
import type { FieldProblem } from '../problem.ts';

type Issue = z.core.$ZodIssue;

/** At most 20 lines; of a union, the alternative that went furthest is the one that was meant. */
export function fieldProblems(issues: readonly Issue[], prefix: readonly PropertyKey[] = []): FieldProblem[] {
  return issues.flatMap((issue) => lines(issue, prefix)).slice(0, 20);
}

function lines(issue: Issue, prefix: readonly PropertyKey[]): FieldProblem[] {
  const path = [...prefix, ...issue.path];
  if (issue.code === 'unrecognized_keys') return issue.keys.map((key) => ({ path: dotted([...path, key]), problem: 'unknown field' }));
  if (issue.code === 'invalid_union' && issue.errors.length > 0) {
    const meant = issue.errors.toSorted((a, b) => depth(b) - depth(a))[0] ?? [];
    if (depth(meant) > 0) return fieldProblems(meant, path);
  }
  return [{ path: dotted(path), problem: issue.message }];
}

function depth(issues: readonly Issue[]): number {
  return Math.max(0, ...issues.map((issue) => issue.path.length + (issue.code === 'unrecognized_keys' ? 1 : 0)));
}

function dotted(path: readonly PropertyKey[]): string {
  return path.map((part) => String(part).slice(0, 100).toWellFormed()).join('.');
}
