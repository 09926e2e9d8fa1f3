/** Words that can be compared: what a question is about, and which of them a text holds. */

const stopWords = new Set(`a about after all also am an and any are as at be because been before being but by can could did do does doing for from
had has have having how i if in into is it its just like me more most my no not of on one only or other our out over please say says should so some tell
than that the their them then there these they this those to up us use used was we were what when where which while who whom whose why will with
would you your file files document documents folder`.split(/\s+/));

/** Distinct words of `text` without those that say nothing, in order; endings cut, so that "retries" meets "retry". */
export function keywords(text: string): readonly string[] {
  const words = text.toLowerCase().normalize('NFC').match(/[\p{L}\p{N}]+/gu) ?? [];
  return [...new Set(words.filter((word) => word.length > 1 && !stopWords.has(word)).map(stem))];
}

function stem(word: string): string {
  if (word.length > 4 && word.endsWith('ies')) return `${word.slice(0, -3)}y`;
  if (word.length > 5 && word.endsWith('ing')) return word.slice(0, -3);
  if (word.length > 4 && word.endsWith('ed')) return word.slice(0, -2);
  if (word.length > 4 && word.endsWith('es')) return word.slice(0, -2);
  if (word.length > 3 && word.endsWith('s') && !word.endsWith('ss')) return word.slice(0, -1);
  if (word.length > 4 && word.endsWith('e')) return word.slice(0, -1);
  return word;
}

/** How many of `wanted` occur in `text`. */
export function overlap(wanted: readonly string[], text: string): number {
  const held = new Set(keywords(text));
  return wanted.filter((word) => held.has(word)).length;
}
