/** What is wrong with a part of a request, told by where that part stands. */
import { Problem } from '../problem.ts';

/** `check`, with every path of a `Problem` that it throws put under `place`. */
export function under<T>(place: string, check: () => T): T {
  try {
    return check();
  } catch (error) {
    throw placed(place, error);
  }
}

/** The same for an error that is there already; what is no `Problem` stays as it is. */
export function placed(place: string, error: unknown): unknown {
  if (!(error instanceof Problem)) return error;
  const { statusCode: status, code, message, headers, cause } = error;
  const errors = error.errors.length === 0 ? [{ path: place, problem: message }] : error.errors.map(({ path, problem }) => ({ path: path === '' ? place : `${place}.${path}`, problem }));
  return new Problem({ status, code, detail: `${place}: ${message}`, errors, headers, cause });
}
