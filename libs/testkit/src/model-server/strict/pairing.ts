/**
 * The rule that every wire has: each call has its one result right behind the message, in the order of the calls; no result is
 * without a call; ids are unique in the conversation.
 */

/** What of a conversation matters here, in order. Anything that stands between a call and its result is `other`. */
export type Step =
  | { readonly type: 'call'; readonly where: string; readonly id: unknown; readonly name: unknown }
  /** `name`: of the tool, where results say it. */
  | { readonly type: 'result'; readonly where: string; readonly id: unknown; readonly name?: unknown }
  | { readonly type: 'other'; readonly where: string };

interface Open { readonly id: string; readonly name: unknown }

export function pairingProblems(steps: readonly Step[]): string[] {
  const problems: string[] = [];
  const seen = new Set<string>();
  let open: Open[] = [];
  const flush = (where: string): void => {
    problems.push(...open.map((call) => `${where}: call ${call.id} has no result`));
    open = [];
  };
  let answering = false;
  for (const step of steps) {
    const { type, where } = step;
    if (type === 'other' || (type === 'call' && answering)) flush(where);
    answering = type === 'result';
    if (type === 'call') {
      const id = String(step.id);
      if (seen.has(id)) problems.push(`${where}: call id ${id} is not unique`);
      seen.add(id);
      open.push({ id, name: step.name });
    }
    if (type === 'result') {
      const problem = resultProblem(step, open, seen);
      if (problem !== null) problems.push(`${where}: ${problem}`);
      open = open.filter((call) => call.id !== step.id);
    }
  }
  flush('the end');
  return problems;
}

function resultProblem(result: Extract<Step, { type: 'result' }>, open: readonly Open[], seen: ReadonlySet<string>): string | null {
  const { id } = result;
  if (typeof id !== 'string') return 'a result without the id of its call';
  const own = open.find((call) => call.id === id);
  if (own === undefined) return seen.has(id) ? `call ${id} has more than one result, or it does not stand right behind its call` : `result ${id} has no call`;
  if (open[0] !== own) return `result ${id} is out of order`;
  return result.name === undefined || result.name === own.name ? null : `result ${id} names another tool than its call`;
}
