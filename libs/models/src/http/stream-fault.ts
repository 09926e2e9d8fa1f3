/** What may be wrong with a reply whose status was good. */

/** An error in the middle of a stream that began with 200. */
export class StreamedError extends Error {
  /** The whole frame, as it came. */
  readonly frame: string;

  constructor(frame: string) {
    super('the server sent an error in the middle of its reply');
    this.name = 'StreamedError';
    this.frame = frame;
  }
}

/** Something that is no frame of this wire. */
export class UnreadableReply extends Error {
  constructor(what: string) {
    super(`the server sent what cannot be read: ${what.slice(0, 200)}`);
    this.name = 'UnreadableReply';
  }
}

/** The stream ended, in good order, before its terminal marker. */
export class EarlyEnd extends Error {
  constructor() {
    super('the stream ended before the reply was whole');
    this.name = 'EarlyEnd';
  }
}
