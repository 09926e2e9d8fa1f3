export { createAnswerJudge, type AnswerJudgeDeps, type AnswerJudgeOptions } from './answer-judge.ts';
export type { HookFunction, HookResult, ValidatorFunction, ValidatorResult } from './functions.ts';
