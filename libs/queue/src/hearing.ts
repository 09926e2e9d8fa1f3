/**
 * Whether a worker still hears its queue. A client that came back after a cut can be connected and deaf: jobs wait, there is room,
 * and none is taken.
 */
export interface HearingLook {
  readonly waiting: number;
  /** Jobs taken so far, ever. */
  readonly taken: number;
  readonly inHand: number;
  readonly room: number;
}

export interface Hearing {
  /** Tells of one look; true when it was the last of `looks` in a row at which nothing was heard. */
  look(look: HearingLook): boolean;
  /** From the look at which it was found until something is taken, or nothing waits. */
  readonly deaf: boolean;
}

export function createHearing(looks: number): Hearing {
  let taken = -1;
  let silent = 0;
  let deaf = false;
  return {
    look: (look) => {
      const heard = look.taken !== taken || look.waiting === 0 || look.inHand >= look.room;
      taken = look.taken;
      silent = heard ? 0 : silent + 1;
      if (heard) deaf = false;
      const found = silent === looks;
      if (found) {
        deaf = true;
        silent = 0;
      }
      return found;
    },
    get deaf() { return deaf; },
  };
}
