/** One call from beginning to result, whatever the tool does (T1, T2, T3 of the port). */
import { assertNever } from '@treadle/core';
import type { ToolRun, ToolRunResult } from '@treadle/engine';
import type { CallEnd, ToolKind } from '../kind.ts';
import type { Slots } from './slots.ts';
import { openWindow, type OpenWindow } from './window.ts';

/** How often progress may put a time-out off where the host does not say. */
const totalFactor = 4;

export interface CallRules {
  readonly graceMs: number;
  /** Of the tool; null where any number of its calls may run at once. */
  readonly slots: Slots | null;
}

/** Never rejects. Answers within the grace after an abort or a time-out, also where the tool ignores its signal. */
export async function runCall(kind: ToolKind | undefined, run: ToolRun, { graceMs, slots }: CallRules): Promise<ToolRunResult> {
  if (kind === undefined) return notStarted(`This worker has no tool named ${run.tool.name}.`);
  const window = openWindow(run.signal, { timeoutMs: run.tool.timeout_ms, maxTotalMs: run.tool.max_total_ms ?? run.tool.timeout_ms * totalFactor, graceMs, confirm: run.confirm });
  try {
    if (window.cause() !== null) return neverBegun;
    const end = await Promise.race([slots === null ? kind.call(run, window) : inSlot(slots, window, () => kind.call(run, window)), window.overdue.then(() => null)]);
    return resultOf(end, window);
  } catch (error) {
    const why = `The tool could not be called: ${errorText(error)}`;
    return window.begun() ? unknown(why) : notStarted(why);
  } finally {
    window.end();
  }
}

/**
 * Waits for a slot, before the tool's time begins, and asks then whether the run is still held. The slot is free when the tool has truly
 * ended: one that is left behind goes on, and keeps it.
 */
async function inSlot(slots: Slots, window: OpenWindow, call: () => Promise<CallEnd>): Promise<CallEnd> {
  let free = (): void => undefined;
  try {
    free = await slots.take(window.signal);
    await window.confirm();
  } catch (error) {
    free();
    return { type: 'not_started', why: `The call was not started: ${errorText(error)}` };
  }
  try {
    return await call();
  } finally {
    free();
  }
}

/** `end` null: left behind. After an abort or a time-out nobody waited for the answer, so what was begun counts as unknown. */
function resultOf(end: CallEnd | null, window: OpenWindow): ToolRunResult {
  const cause = window.cause();
  if (cause !== null && window.begun() && end?.type !== 'not_started') {
    return unknown(cause === 'timed_out'
      ? `The tool ${window.timeWords()}. Whether it had an effect is not known.`
      : 'The call was interrupted. Whether it had an effect is not known.');
  }
  if (end === null || (cause !== null && !window.begun())) return neverBegun;
  switch (end.type) {
    case 'answered': return { content: end.content.toWellFormed(), is_error: end.is_error, settled: true, ...(end.attachments === undefined ? {} : { attachments: end.attachments }) };
    case 'not_started': return notStarted(end.why);
    case 'lost': return unknown(end.why);
    default: return assertNever(end);
  }
}

/** Not the tool's doing, nor the model's. */
const neverBegun: ToolRunResult = { content: 'The call was interrupted before it began.', is_error: true, settled: true, never_begun: true };

/** It certainly did not happen, so nothing is in doubt. */
function notStarted(content: string): ToolRunResult {
  return { content: content.toWellFormed(), is_error: true, settled: true };
}

function unknown(content: string): ToolRunResult {
  return { content: content.toWellFormed(), is_error: true, settled: false };
}

/** Words for anything that can be thrown, also null and objects that resist being read. */
export function errorText(error: unknown): string {
  try {
    if (error instanceof Error) return error.message === '' ? error.name : String(error.message);
    if (typeof error === 'object' && error !== null) return JSON.stringify(error) ?? 'an error without words';
    return String(error);
  } catch {
    return 'an error that cannot be read';
  }
}
