/** An Idempotency-Key stands for one body; the same words in another order are the same body. */
import { createHash } from 'node:crypto';
import { canonicalJson } from '@treadle/core';
import { Problem } from '../problem.ts';

/** What a key is reserved with. */
export function bodyHashOf(rawBody: unknown): string {
  return createHash('sha256').update(canonicalJson(rawBody)).digest('hex');
}

/** The 409 for a key that was reserved with another hash. */
export function usedWithAnotherBody(): Problem {
  return new Problem({ status: 409, code: 'idempotency_conflict', detail: 'This Idempotency-Key was used with another body.' });
}
