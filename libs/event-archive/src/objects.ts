/**
 * What the archive needs of a store of objects; an S3 bucket and a directory both give it.
 *
 * O1  `put` has stored everything or nothing: no reader ever sees part of an object.
 * O2  `put` with `create` on a key that exists answers `exists` and changes nothing, where `conditionalPuts` is `enforced`.
 * O3  A call that throws `unavailable` may still have happened.
 * O4  Keys are listed in ascending order of their bytes.
 */
import { ArchiveFailed } from '@treadle/engine';

/** What a store does with "only where the key is new": obeys it, overwrites all the same, or refuses the request. */
export type ConditionalPuts = 'enforced' | 'ignored' | 'unsupported';

export interface Capabilities { readonly conditionalPuts: ConditionalPuts }

export type PutMode = 'create' | 'replace';

export interface ObjectStore {
  /** Null where only a probe can tell; see `probeObjects`. */
  readonly capabilities: Capabilities | null;
  /** Throws `ObjectsFailed`, as every call here does. */
  put(key: string, bytes: Uint8Array, mode: PutMode): Promise<'stored' | 'exists'>;
  /** Null where there is none. An object above `maxBytes` is refused. */
  get(key: string, maxBytes: number): Promise<Uint8Array | null>;
  /** Keys that begin with `prefix` and come after `afterKey`, page by page as they are asked for. */
  list(prefix: string, afterKey: string): AsyncIterable<string>;
  /** Harmless where there is none. */
  delete(key: string): Promise<void>;
  /** Lets connections go. */
  close(): void;
}

export type FailureKind = ArchiveFailed['kind'];

/**
 * Every failure of a store. The message names the operation, the key, and a status or error code; it never holds what the
 * server or the SDK said, since such texts carry key ids and signed headers. For the same reason there is no `cause`.
 */
export class ObjectsFailed extends ArchiveFailed {
  constructor(kind: FailureKind, what: string) {
    super(kind, `archive store ${kind}: ${what}`);
    this.name = 'ObjectsFailed';
  }
}
