/** What validators say of an answer, in the agent's order. */
import { wellFormed, type AgentSpec, type Judgement } from '@treadle/core';
import type { AnswerView } from '@treadle/engine';
import { callValidator } from './functions.ts';
import { findJson } from './json/find-json.ts';
import { faultsInWords } from './json/schemas.ts';
import type { JudgeParts } from './parts.ts';

type ValidatorSpec = AgentSpec['validators'][number];
type Check = Judgement['checks'][number];

type Verdict =
  | { readonly type: 'accepted'; readonly output?: unknown }
  /** `detail`: for people, where the model is told something else. */
  | { readonly type: 'refused'; readonly error_type: string; readonly feedback: string; readonly detail?: string };

export interface Checked { readonly check: Check; /** Of the answer as JSON; undefined where the validator makes none. */ readonly output: unknown }

export function judgeValidators(parts: JudgeParts, validators: readonly ValidatorSpec[], view: AnswerView): Checked[] {
  return validators.map((validator) => {
    const verdict = judge(parts, validator, view);
    const { name, mode } = validator;
    if (verdict.type === 'accepted') return { check: { name, mode, ok: true, error_type: '', feedback: '', detail: '' }, output: verdict.output };
    const { error_type, feedback, detail = feedback } = verdict;
    return { check: { name, mode, ok: false, error_type, feedback, detail }, output: undefined };
  });
}

/** Who could not speak has not agreed: late, broken and missing validators refuse. */
function judge(parts: JudgeParts, validator: ValidatorSpec, view: AnswerView): Verdict {
  const prepared = prepare(parts, validator, view);
  if (typeof prepared !== 'function') return prepared;
  const attempt = parts.time.within(prepared);
  switch (attempt.type) {
    case 'returned': return attempt.value;
    case 'threw': return unable(validator, `it failed: ${attempt.problem}`);
    case 'late': return unable(validator, `it took longer than ${parts.limitMs} ms`, 'timeout');
  }
}

/** What has to be done within the time limit. A schema is compiled before it begins: that is the host's doing and happens once. */
function prepare(parts: JudgeParts, validator: ValidatorSpec, view: AnswerView): Verdict | (() => Verdict) {
  switch (validator.type) {
    case 'json_schema': {
      const schema = parts.schemas.compiled(validator.schema);
      return schema.type === 'unusable' ? unable(validator, schema.problem) : () => againstSchema(schema.validate, view.text);
    }
    case 'regex': return () => (new RegExp(validator.pattern).test(view.text) ? accepted
      : { type: 'refused', error_type: 'pattern', feedback: validator.feedback, detail: `the answer does not match ${validator.pattern}` });
    case 'function': {
      const check = parts.validators[validator.name];
      if (check === undefined) return unable(validator, 'this worker has no function of that name');
      return () => {
        const verdict = callValidator(check, view);
        if ('unusable' in verdict) return unable(validator, verdict.unusable);
        if (verdict.ok) return accepted;
        const { error_type, feedback } = verdict;
        return { type: 'refused', error_type, feedback: feedback.trim() === '' ? `The answer was not accepted by "${validator.name}".` : feedback };
      };
    }
  }
}

const accepted: Verdict = { type: 'accepted' };

type Validate = ((value: unknown) => unknown) & { readonly errors?: Parameters<typeof faultsInWords>[0] | null | undefined };

function againstSchema(validate: Validate, text: string): Verdict {
  const found = findJson(text);
  if (found.type === 'none') {
    return { type: 'refused', error_type: 'json_syntax', feedback: 'The answer must be JSON and nothing else, without words behind it. It could not be read as JSON.', detail: 'the answer is not JSON' };
  }
  // Cleaned first: it goes into the log, and what is logged must be what was checked.
  const value = wellFormed(found.value);
  if (validate(value) === true) return { type: 'accepted', output: value };
  const faults = faultsInWords(validate.errors ?? []);
  return { type: 'refused', error_type: 'schema', feedback: `The answer is JSON, but it does not fit: ${faults}.`, detail: faults };
}

function unable({ name }: ValidatorSpec, why: string, error_type = 'failed'): Verdict {
  return { type: 'refused', error_type, feedback: `The answer could not be checked by "${name}": ${why}.`, detail: why };
}
