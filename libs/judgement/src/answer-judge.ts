/**
 * Judges answers by hooks and validators, each within its time (the port's J1 to J3).
 *
 * Owns compiled schemas and the context that the time limit needs; nothing of a run.
 */
import type { AnswerJudge } from '@treadle/engine';
import type { HookFunction, ValidatorFunction } from './functions.ts';
import { createSchemas } from './json/schemas.ts';
import { judgeHooks } from './judge-hooks.ts';
import { judgeValidators } from './judge-validators.ts';
import type { JudgeParts } from './parts.ts';
import { createTimeLimit } from './time-limit.ts';

/** Functions of the configuration, by name. */
export interface AnswerJudgeDeps {
  readonly hooks: Readonly<Record<string, HookFunction>>;
  readonly validators: Readonly<Record<string, ValidatorFunction>>;
}

export interface AnswerJudgeOptions {
  /** For each hook and each validator. Default 50, a whole number from 1. */
  readonly limitMs?: number;
  /** Told of each hook that could not speak, for the log of the process: the event says only that it was skipped. */
  readonly onSkipped?: (skipped: { readonly hook: string; readonly why: string }) => void;
}

/** `judge` blocks this thread for up to `limitMs` for each hook and validator. */
export function createAnswerJudge(deps: AnswerJudgeDeps, options: AnswerJudgeOptions = {}): AnswerJudge {
  const { limitMs = 50, onSkipped = () => undefined } = options;
  const parts: JudgeParts = {
    limitMs, onSkipped, time: createTimeLimit(limitMs), schemas: createSchemas(),
    // Own names only: a hook called "constructor" is no function of the configuration.
    hooks: ownOf(deps.hooks), validators: ownOf(deps.validators),
  };
  return {
    judge(spec, view) {
      const frozen = Object.freeze({ ...view });
      const hooks = judgeHooks(parts, spec.stop_hooks, frozen);
      const checked = judgeValidators(parts, spec.validators, frozen);
      return { hooks, checks: checked.map((each) => each.check), output: checked.find((each) => each.output !== undefined)?.output ?? null };
    },
  };
}

function ownOf<T>(functions: Readonly<Record<string, T>>): Readonly<Record<string, T>> {
  return Object.assign(Object.create(null) as Record<string, T>, functions);
}
