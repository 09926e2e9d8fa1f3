/**
 * Functions of the configuration: what they may return, and what is made of it. Everything here is called inside the time limit.
 */
import type { HookDecision } from '@treadle/core';
import type { AnswerView } from '@treadle/engine';
import { types } from 'node:util';

/** What a stop hook says of an answer. `prompt` is what the model is told in the extra turn. */
export type HookResult = HookDecision | { readonly decision: HookDecision; readonly prompt?: string };

/** Synchronous and pure: it is called again wherever the same answer is judged again. */
export type HookFunction = (view: AnswerView) => HookResult;

/** `true`: the answer is right. `feedback` is what the model is told; `error_type` (a word like `too_long`) becomes a label of metrics. */
export type ValidatorResult = boolean | { readonly ok: true } | { readonly ok: false; readonly feedback: string; readonly error_type?: string };

/** Synchronous and pure, as hooks are. */
export type ValidatorFunction = (view: AnswerView) => ValidatorResult;

/** Characters of a prompt or of feedback: it goes to the model. */
const maxText = 8192;

export type ReadHook = { readonly decision: HookDecision; readonly prompt: string } | { readonly unusable: string };
export type ReadVerdict = { readonly ok: true } | { readonly ok: false; readonly feedback: string; readonly error_type: string } | { readonly unusable: string };

const decisions: readonly unknown[] = ['stop', 'extra_turn', 'continue'] satisfies HookDecision[];

export function callHook(hook: HookFunction, view: AnswerView): ReadHook {
  const asynchronous = refusal(hook);
  if (asynchronous !== null) return asynchronous;
  const result: unknown = hook(view);
  const promise = promised(result);
  if (promise !== null) return promise;
  const { decision, prompt = '' } = (isObject(result) ? result : { decision: result }) as { decision: unknown; prompt?: unknown };
  if (!decisions.includes(decision)) return { unusable: 'it returned no decision' };
  if (typeof prompt !== 'string') return { unusable: 'it returned a prompt that is no text' };
  if (decision === 'extra_turn' && prompt.trim() === '') return { unusable: 'it asked for an extra turn without a prompt' };
  return { decision: decision as HookDecision, prompt: bounded(prompt) };
}

export function callValidator(validator: ValidatorFunction, view: AnswerView): ReadVerdict {
  const asynchronous = refusal(validator);
  if (asynchronous !== null) return asynchronous;
  const result: unknown = validator(view);
  const promise = promised(result);
  if (promise !== null) return promise;
  const { ok, feedback, error_type } = (isObject(result) ? result : { ok: result }) as { ok: unknown; feedback?: unknown; error_type?: unknown };
  if (ok === true) return { ok };
  if (ok !== false) return { unusable: 'it returned neither true nor what is wrong' };
  return { ok, feedback: typeof feedback === 'string' ? bounded(feedback) : '', error_type: typeof error_type === 'string' && word.test(error_type) ? error_type : 'rejected' };
}

/** A label of metrics has few values; free text is none. */
const word = /^[a-z][a-z0-9_]{0,63}$/;

/** Not even called: what stands behind its first `await` would run later, without a time limit. */
function refusal(called: unknown): { readonly unusable: string } | null {
  return types.isAsyncFunction(called) ? { unusable: 'it is asynchronous' } : null;
}

function promised(result: unknown): { readonly unusable: string } | null {
  // Nobody waits for it; without a handler its rejection would end the process.
  if (types.isPromise(result)) void Promise.prototype.then.call(result, undefined, () => undefined);
  else if (!isObject(result) || typeof (result as { then?: unknown }).then !== 'function') return null;
  return { unusable: 'it returned a promise' };
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}

function bounded(text: string): string {
  return text.slice(0, maxText).toWellFormed();
}
