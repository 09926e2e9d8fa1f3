/** `validators` and `stop_hooks` of an agent: what an answer must be, and what may keep it from ending a run. */
import type { AnswerView } from '@treadle/engine';
import { z } from 'zod';
import { schemaProblem } from './answer-schema.ts';
import { pattern, plainName } from './names.ts';

/** What a stop hook says; `prompt` is what the model is told in the extra turn. */
export type HookAnswer = 'stop' | 'continue' | { readonly decision: 'stop' | 'continue'; readonly prompt?: string } | { readonly decision: 'extra_turn'; readonly prompt: string };

/** Pure, synchronous, at most 50 ms; one that throws, is late or returns a promise is skipped. */
export type DecideFunction = (view: AnswerView) => HookAnswer;

/** `true`, or what is wrong: `feedback` is for the model, `error_type` a word like `too_long` for events and metrics (default `rejected`). */
export type CheckAnswer = boolean | { readonly ok: true } | { readonly ok: false; readonly feedback: string; readonly error_type?: string };

/** Pure, synchronous, at most 50 ms; one that throws, is late or returns a promise has not agreed. */
export type CheckFunction = (view: AnswerView) => CheckAnswer;

const onlyInTs = 'expected a function, which only treadle.config.ts can hold';
const asynchronous = 'expected a function that is not async: an answer is judged at once';

function ownFunction<Signature>() {
  return z.custom<Signature>((value) => typeof value === 'function', onlyInTs)
    .refine((value) => (value as unknown as object).constructor.name !== 'AsyncFunction', asynchronous);
}

const jsonSchema = z.record(z.string(), z.unknown()).superRefine((schema, context) => {
  const problem = schemaProblem(schema);
  if (problem !== null) context.addIssue({ code: 'custom', message: `expected a JSON Schema: ${problem}` });
});

/** Names of the host's own validators (contract, section 6): one word must mean one thing in events. */
const hostNames: readonly string[] = ['action_parse', 'non_empty_final_answer'];
const validatorName = plainName.refine((name) => !hostNames.includes(name), 'this name belongs to a validator of the host');

const mode = z.enum(['enforce', 'report']).default('enforce');
const maxPrompt = 8192;

/** No editor of JSON should offer what JSON cannot hold. */
const notInJson = { not: {}, description: onlyInTs };

export const validatorSchema = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('json_schema'), name: validatorName.optional(), mode, schema: jsonSchema }),
  z.strictObject({ type: z.literal('regex'), name: validatorName.optional(), mode, pattern, feedback: z.string().min(1).max(maxPrompt).optional() }),
  z.strictObject({ type: z.literal('function'), name: validatorName, mode, check: ownFunction<CheckFunction>() }).meta(notInJson),
]);

export const stopHookSchema = z.discriminatedUnion('type', [
  z.strictObject({
    type: z.literal('regex'), name: plainName.optional(), pattern, decision: z.enum(['stop', 'extra_turn', 'continue']), prompt: z.string().max(maxPrompt).default(''),
  }).superRefine(({ decision, prompt }, context) => {
    if (decision === 'extra_turn' && prompt.trim() === '') context.addIssue({ code: 'custom', path: ['prompt'], message: 'an extra turn needs a prompt' });
  }),
  z.strictObject({ type: z.literal('function'), name: plainName, decide: ownFunction<DecideFunction>() }).meta(notInJson),
]);

/** The name of an entry that has none of its own: `<type>_<index>`. */
export function nameOf(entry: { readonly type: string; readonly name?: string | undefined }, index: number): string {
  return entry.name ?? `${entry.type}_${index}`;
}
