/** What judging needs. Not a part of the contract. */
import type { HookFunction, ValidatorFunction } from './functions.ts';
import type { Schemas } from './json/schemas.ts';
import type { TimeLimit } from './time-limit.ts';

export interface JudgeParts {
  readonly hooks: Readonly<Record<string, HookFunction>>;
  readonly validators: Readonly<Record<string, ValidatorFunction>>;
  readonly limitMs: number;
  readonly onSkipped: (skipped: { readonly hook: string; readonly why: string }) => void;
  readonly time: TimeLimit;
  readonly schemas: Schemas;
}
