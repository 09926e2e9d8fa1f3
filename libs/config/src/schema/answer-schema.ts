/** Whether a JSON Schema of a validator can be used at all: a bad one is a fault of the file, not of every answer. */
import { schemaPattern } from '@treadle/core';
import { Ajv } from 'ajv';
import { Ajv2019 } from 'ajv/dist/2019.js';
import { Ajv2020 } from 'ajv/dist/2020.js';

const options = { strict: false, validateFormats: false, code: { regExp: schemaPattern }, logger: false as const, addUsedSchema: false };

/** Null where it can. The draft is chosen by `$schema`, as the judge of answers chooses it; without one it is 2020-12. */
export function schemaProblem({ $schema, $async: _, ...schema }: Readonly<Record<string, unknown>>): string | null {
  const draft = typeof $schema === 'string' ? $schema : '';
  const Compiler = /draft-0[467]\b/.test(draft) ? Ajv : draft.includes('2019-09') ? Ajv2019 : Ajv2020;
  try {
    // The compiler finds the whole of a schema (`$ref: "#"`) by its name alone.
    new Compiler(options).compile({ $id: 'https://answer.invalid/', ...schema });
    return null;
  } catch (error) {
    return error instanceof Error ? error.message.slice(0, 300) : String(error);
  }
}
