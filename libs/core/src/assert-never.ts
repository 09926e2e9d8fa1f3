/** The end of an exhaustive switch: a new member of a closed union without an answer does not compile. */
export function assertNever(value: never): never {
  throw new InvariantBroken(`unexpected value: ${JSON.stringify(value)}`);
}

/** A bug of ours: the program is in a state that its invariants exclude. Never caught to go on. */
export class InvariantBroken extends Error {
  readonly code = 'INVARIANT_BROKEN';

  constructor(message: string) {
    super(`INVARIANT_BROKEN: ${message}`);
    this.name = 'InvariantBroken';
  }
}
