/**
 * Puts a reply's text together from increments that may end inside a character (a JSON escape of half a surrogate pair), so that
 * what is shown, and what is kept, never holds half a character.
 */
export interface TextAssembler {
  /** Takes an increment, answers what can be shown now. */
  readonly take: (increment: string) => string;
  /** Answers what was still held back. */
  readonly end: () => string;
}

export function createTextAssembler(): TextAssembler {
  let held = '';
  return {
    take: (increment) => {
      const text = held + increment;
      const last = text.charCodeAt(text.length - 1);
      held = last >= 0xd800 && last < 0xdc00 ? text.slice(-1) : '';
      return text.slice(0, text.length - held.length).toWellFormed();
    },
    end: () => {
      const rest = held.toWellFormed();
      held = '';
      return rest;
    },
  };
}
