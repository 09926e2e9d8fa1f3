/** What stop hooks say of an answer, in the agent's order. */
import type { AgentSpec, Judgement } from '@treadle/core';
import type { AnswerView } from '@treadle/engine';
import { callHook, type ReadHook } from './functions.ts';
import type { JudgeParts } from './parts.ts';
import type { Attempt } from './time-limit.ts';

type HookSpec = AgentSpec['stop_hooks'][number];
type HookEntry = Judgement['hooks'][number];

/** A regular expression that does not match has nothing to say and no entry. */
export function judgeHooks(parts: JudgeParts, hooks: readonly HookSpec[], view: AnswerView): HookEntry[] {
  return hooks.flatMap((hook): HookEntry[] => {
    const attempt = parts.time.within(() => speak(parts, hook, view));
    if (attempt.type === 'returned' && attempt.value === null) return [];
    if (attempt.type === 'returned' && attempt.value !== null && 'decision' in attempt.value) return [{ hook: hook.name, ...attempt.value }];
    parts.onSkipped({ hook: hook.name, why: whyNot(attempt, parts.limitMs) });
    return [{ hook: hook.name, decision: 'skipped', prompt: '' }];
  });
}

function speak(parts: JudgeParts, hook: HookSpec, view: AnswerView): ReadHook | null {
  if (hook.type === 'regex') return new RegExp(hook.pattern).test(view.text) ? { decision: hook.decision, prompt: hook.prompt } : null;
  const decide = parts.hooks[hook.name];
  return decide === undefined ? { unusable: 'this worker has no function of that name' } : callHook(decide, view);
}

function whyNot(attempt: Attempt<ReadHook | null>, limitMs: number): string {
  switch (attempt.type) {
    case 'late': return `it took longer than ${limitMs} ms`;
    case 'threw': return `it failed: ${attempt.problem}`;
    case 'returned': return attempt.value !== null && 'unusable' in attempt.value ? attempt.value.unusable : '';
  }
}
