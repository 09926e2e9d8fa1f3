/**
 * The invariants of every history, whatever was done to the processes in it. Pure: a history in, problems out.
 *
 * I1  every accepted run reaches a terminal state
 * I2  a call without a key starts at most once; all starts of a call with a key carry the same one
 * I3  seq 1 … n without gap or double; exactly one terminal event, and it is the last
 * I4  what each reader saw is the beginning of the stored log, event for event
 * I5  log = stored state (by hash), and log = archive
 * I6  every call has exactly one result; no request was refused by the strict model server
 * I7  no event carries a lower epoch than an event before it, and no call starts under a lower one than a call before it
 * I8  the run's usage is the sum of what the model counted for the replies that were recorded
 * I9  the test was one: at least 95 % of the runs completed; of the planned faults at least 95 % fired, and each kind at least once
 */
import type { RunEvent } from '@treadle/core';
import type { LedgerLine } from '@treadle/testkit';

export interface RunHistory {
  readonly id: string;
  readonly status: string;
  readonly stop_reason: string | null;
  readonly usage: { readonly input_tokens: number; readonly output_tokens: number };
  /** As the API tells it, one JSON text an event. */
  readonly log: readonly string[];
  /** As the archive holds it, read without the product. Null: the archive is not looked at. */
  readonly archived: readonly string[] | null;
  readonly replay: { readonly identical: boolean; readonly differences: readonly unknown[] };
  /** What each reader saw. */
  readonly seen: readonly (readonly string[])[];
}

export interface History {
  readonly runs: readonly RunHistory[];
  readonly ledger: readonly LedgerLine[];
  /** Tools that take an idempotency key, by the name they have in the ledger. */
  readonly keyedTools: readonly string[];
  /** Tools that only read: they may start again. */
  readonly readTools: readonly string[];
  readonly refused: readonly string[];
  /** What the model server counts for each reply; null where it does not say. */
  readonly usagePerReply: { readonly input: number; readonly output: number } | null;
  /** Kinds of the faults that were planned and that fired, one entry for each. A neighbour's death can take a fault's occasion away. */
  readonly planned: readonly string[];
  readonly fired: readonly string[];
  /** Workers stood still and came back: one may freeze between the store's answer and the write to the tool's pipe. */
  readonly frozenWorkers?: boolean;
  /** Ends other than `completed` that the test means to bring about. */
  readonly expectedEnds?: readonly string[];
}

const terminal = ['completed', 'expired', 'failed', 'cancelled'];

export function problemsOf(history: History): string[] {
  return [
    ...history.runs.flatMap((run) => problemsOfRun(run, history)), ...startProblems(history), ...(history.frozenWorkers === true ? [] : lateStarts(history)), ...history.refused.map((refusal) => `I6 the model server refused: ${refusal}`),
    ...guardProblems(history),
  ];
}

function problemsOfRun(run: RunHistory, history: History): string[] {
  const problems: string[] = [];
  const say = (text: string): void => { problems.push(`${run.id}: ${text}`); };
  const events = run.log.map((line) => JSON.parse(line) as RunEvent);
  if (!terminal.includes(run.status)) say(`I1 is ${run.status}`);
  const gap = events.findIndex((event, index) => event.seq !== index + 1);
  if (gap >= 0) say(`I3 event ${gap + 1} has seq ${String(events[gap]?.seq)}`);
  const ends = events.filter((event) => event.type === 'run_end');
  if (ends.length !== 1 || events.at(-1)?.type !== 'run_end') say(`I3 ${ends.length} ends, the last event is ${String(events.at(-1)?.type)}`);
  for (const [reader, seen] of run.seen.entries()) {
    const differs = seen.findIndex((line, index) => !sameEvent(line, run.log[index]));
    if (differs >= 0) say(`I4 reader ${reader} saw at ${differs + 1} ${seen[differs]?.slice(0, 200) ?? ''}, stored is ${run.log[differs]?.slice(0, 200) ?? 'nothing'}`);
  }
  if (!run.replay.identical) say(`I5 replay differs: ${JSON.stringify(run.replay.differences).slice(0, 300)}`);
  if (run.archived !== null && (run.archived.length !== run.log.length || run.archived.some((line, index) => !sameEvent(line, run.log[index])))) say(`I5 the archive holds ${run.archived.length} events, the log ${run.log.length}, or others`);
  problems.push(...resultProblems(run.id, events), ...epochProblems(run.id, events), ...usageProblems(run, events, history.usagePerReply));
  return problems;
}

function sameEvent(line: string | undefined, other: string | undefined): boolean {
  if (line === undefined || other === undefined) return false;
  return line === other || JSON.stringify(JSON.parse(line)) === JSON.stringify(JSON.parse(other));
}

function resultProblems(id: string, events: readonly RunEvent[]): string[] {
  const uses = events.flatMap((event) => event.type === 'tool_use' ? [event.tool_use_id] : []);
  const results = events.flatMap((event) => event.type === 'tool_result' ? [event.tool_use_id] : []);
  const wrong = uses.filter((use) => results.filter((result) => result === use).length !== 1);
  return [...wrong.map((use) => `${id}: I6 ${use} has not exactly one result`), ...(new Set(uses).size === uses.length ? [] : [`${id}: I6 a tool_use_id twice`]),
    ...results.filter((result) => !uses.includes(result)).map((result) => `${id}: I6 a result of ${result}, which was never called`)];
}

function epochProblems(id: string, events: readonly RunEvent[]): string[] {
  return events.flatMap((event, index) => event.epoch < (events[index - 1]?.epoch ?? 0) ? [`${id}: I7 event ${event.seq} is of epoch ${event.epoch}, the one before of ${events[index - 1]?.epoch ?? 0}`] : []);
}

/** One reply a turn at most: a turn with a call or a final text has had one. */
function usageProblems(run: RunHistory, events: readonly RunEvent[], per: History['usagePerReply']): string[] {
  if (per === null) return [];
  const replied = new Set(events.flatMap((event) => event.type === 'tool_use' || (event.type === 'assistant_text' && event.is_final && event.interrupted !== true) ? [event.turn_number] : []));
  const { input_tokens, output_tokens } = run.usage;
  return input_tokens === per.input * replied.size && output_tokens === per.output * replied.size ? []
    : [`${run.id}: I8 ${input_tokens} and ${output_tokens} tokens for ${replied.size} replies`];
}

/** By the tools' own record: a call that starts under an older epoch than one before it. */
export function lateStarts({ ledger }: Pick<History, 'ledger'>): string[] {
  const highest = new Map<string, number>();
  return ledger.filter((line) => line.phase === 'start').flatMap(({ run_id, tool_use_id, epoch }) => {
    const before = highest.get(run_id ?? '') ?? 0;
    highest.set(run_id ?? '', Math.max(before, epoch ?? 0));
    return (epoch ?? 0) < before ? [`${run_id ?? ''}: I7 ${tool_use_id ?? ''} started under epoch ${String(epoch)}, after one under ${before}`] : [];
  });
}

function startProblems({ ledger, keyedTools, readTools }: History): string[] {
  const calls = new Map<string, LedgerLine[]>();
  for (const line of ledger) {
    if (line.phase !== 'start' || readTools.includes(line.tool)) continue;
    const call = `${line.run_id ?? ''} ${line.tool_use_id ?? ''}`;
    calls.set(call, [...calls.get(call) ?? [], line]);
  }
  return [...calls].flatMap(([call, starts]) => {
    const keys = new Set(starts.map((line) => line.idempotency_key));
    if (keyedTools.includes(starts[0]?.tool ?? '')) return keys.size === 1 && !keys.has(null) ? [] : [`I2 ${call} started with ${keys.size} keys`];
    return starts.length === 1 ? [] : [`I2 ${call} started ${starts.length} times without a key`];
  });
}

function guardProblems({ runs, planned, fired, expectedEnds = [] }: History): string[] {
  const fine = runs.filter((run) => run.status === 'completed' || expectedEnds.includes(run.stop_reason ?? ''));
  const others = runs.filter((run) => !fine.includes(run)).map((run) => `${run.id} ${run.status} ${run.stop_reason ?? ''}`);
  const never = [...new Set(planned)].filter((kind) => !fired.includes(kind));
  return [
    ...(fine.length >= runs.length * 0.95 && runs.length > 0 ? [] : [`I9 ${fine.length} of ${runs.length} runs completed; others: ${others.slice(0, 5).join('; ')}`]),
    ...(never.length === 0 ? [] : [`I9 planned and never fired: ${never.join(', ')}`]),
    ...(fired.length >= planned.length * 0.95 ? [] : [`I9 of ${planned.length} planned faults ${fired.length} fired`]),
  ];
}
