/**
 * JSON whose numbers are checked: one that would become another number once read (the id of one thing that of its neighbour) is kept
 * as its own text, which is no number to anybody and which `inexactNumber` finds.
 */

/** What this platform has of the proposal `JSON.parse source text access`; the language's own types do not know it yet. */
interface ExactJson {
  parse(text: string, reviver: (key: string, value: unknown, context: { readonly source?: string }) => unknown): unknown;
  rawJSON(text: string): unknown;
  isRawJSON(value: unknown): value is { readonly rawJSON: string };
}

const exact = JSON as unknown as ExactJson;

/** Characters. Looking at each value of more would hold up everybody else; arguments of such a length are refused anyway. */
const longest = 1024 * 1024;

/** Throws as `JSON.parse` does. Written as JSON again it is what it was. */
export function parseExactly(text: string): unknown {
  // Few texts hold such a number.
  if (text.length > longest || !/\d{16}|\d[eE]/.test(text)) return JSON.parse(text) as unknown;
  return exact.parse(text, (_, value, { source = '' }) => (typeof value === 'number' && isInexact(value, source) ? exact.rawJSON(source) : value));
}

function isInexact(value: number, source: string): boolean {
  return !Number.isFinite(value) || (/^-?\d+$/.test(source) && BigInt(source) !== BigInt(value));
}

/** The text of the first such number in what `parseExactly` has read; null where there is none. `depth`: of what is looked at. */
export function inexactNumber(value: unknown, depth = 64): string | null {
  if (exact.isRawJSON(value)) return value.rawJSON;
  if (value === null || typeof value !== 'object' || depth === 0) return null;
  for (const each of Object.values(value)) {
    const found = inexactNumber(each, depth - 1);
    if (found !== null) return found;
  }
  return null;
}

/** For the model to read: why arguments that `parseExactly` has read cannot be passed on; null where they can. */
export function inexactProblem(input: unknown): string | null {
  const number = inexactNumber(input);
  return number === null ? null : `The number ${number.slice(0, 100)} is too large to be passed on as it is. Send it as text where the tool takes text.`;
}
