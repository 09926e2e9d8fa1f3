/** Time and randomness, handed in so that tests can hold them still. */

export interface Clock {
  /** Epoch milliseconds by the store's clock, never going back within a process. */
  nowMs(): number;
  /** Milliseconds since some fixed point, monotonic. */
  monotonicMs(): number;
}

export interface Randomness {
  /** UUIDv7. */
  uuid(): string;
  /** 0 to 1. */
  jitter(): number;
}
