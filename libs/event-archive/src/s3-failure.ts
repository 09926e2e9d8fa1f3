/** What went wrong at an S3 store, by what can be done about it. */
import { ObjectsFailed } from './objects.ts';

/** 409 is a race of conditional writes; everything here may succeed when it is asked again. */
const passingStatuses = new Set([408, 409, 425, 429, 500, 502, 503, 504]);

/** Never sent, whatever the network does: mistakes of configuration. */
const ownMistakes = new Set(['CredentialsProviderError', 'ERR_INVALID_URL', 'InvalidBucketName']);

export function statusOf(error: unknown): number | null {
  const metadata = fieldOf(error, '$metadata');
  const status = fieldOf(metadata, 'httpStatusCode');
  return typeof status === 'number' ? status : null;
}

/** The error's name as S3 gives it (`NoSuchKey`), or the system's code (`ECONNRESET`); nothing else of it is ever shown. */
export function nameOf(error: unknown): string {
  const found = [fieldOf(error, 'code'), fieldOf(error, 'Code'), fieldOf(error, 'name')]
    .find((name) => typeof name === 'string' && /^[A-Za-z][A-Za-z0-9_.]{0,63}$/.test(name));
  return typeof found === 'string' ? found : 'Error';
}

/** Without a status the request had no answer: the network, a time limit, or a mistake made before it was sent. */
export function asFailure(operation: string, error: unknown): ObjectsFailed {
  if (error instanceof ObjectsFailed) return error;
  const status = statusOf(error);
  const name = nameOf(error);
  if (status !== null) return new ObjectsFailed(passingStatuses.has(status) ? 'unavailable' : 'refused', `${operation}: ${status} ${name}`);
  if (isMissingRegion(error)) return new ObjectsFailed('refused', `${operation}: no region is set`);
  return new ObjectsFailed(ownMistakes.has(name) ? 'refused' : 'unavailable', `${operation}: ${name}`);
}

/** The SDK throws this one as a bare `Error`. */
function isMissingRegion(error: unknown): boolean {
  return error instanceof Error && error.message === 'Region is missing';
}

function fieldOf(value: unknown, name: string): unknown {
  return value !== null && typeof value === 'object' && name in value ? (value as Record<string, unknown>)[name] : undefined;
}
