/**
 * What makes two calls, or two errors, the same: canonical text, with what changes by itself taken out, as one short hash. Of a call that
 * is the time of day; a day, or an id, is what it asks for. Of an error it is every number, date and id.
 */
import { canonicalJson } from './canonical-json.ts';
import type { RunCreated } from './events.ts';

/** How many calls are remembered; a repeating pattern of up to three calls is seen within them. */
export const rememberedCalls = 24;
/** Errors are counted within so many turns. */
export const errorWindowTurns = 20;

/** Without `rules` as in logs of before: a day and an id were left out of a call, too. */
export function callFingerprint(name: string, input: Readonly<Record<string, unknown>>, rules?: RunCreated['rules']): string {
  return hash(`${name} ${(rules === undefined ? steady : timeless)(canonicalJson(input))}`);
}

export function errorFingerprint(kind: string, detail: string): string {
  return hash(`${kind} ${steady(detail.toLowerCase()).replace(/\d+/g, '#').replace(/\s+/g, ' ').slice(0, 200)}`);
}

/** The moment at which a call is made differs from call to call without meaning anything. Midnight is a day's name. */
function timeless(text: string): string {
  return text
    .replace(/\d{4}-\d{2}-\d{2}[T ](?!00:00(:00(\.0+)?)?(?![:.\d]))\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:?\d{2})?/g, '#time')
    .replace(/\b1[5-9]\d{8}(\d{3})?\b/g, '#time');
}

/** The same error names another time, or another thing, each time. */
function steady(text: string): string {
  return text
    .replace(/\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:?\d{2})?)?/g, '#time')
    .replace(/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/gi, '#id')
    .replace(/\b1[5-9]\d{8}(\d{3})?\b/g, '#time');
}

/** cyrb53, 53 bits: short, and good enough to tell a run's own calls apart. */
function hash(text: string): string {
  let a = 0xdeadbeef;
  let b = 0x41c6ce57;
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index);
    a = Math.imul(a ^ code, 2654435761);
    b = Math.imul(b ^ code, 1597334677);
  }
  a = Math.imul(a ^ (a >>> 16), 2246822507) ^ Math.imul(b ^ (b >>> 13), 3266489909);
  b = Math.imul(b ^ (b >>> 16), 2246822507) ^ Math.imul(a ^ (a >>> 13), 3266489909);
  return (4294967296 * (2097151 & b) + (a >>> 0)).toString(36);
}

/** How often in a row the newest call, or the newest pattern of two or three calls, has come. */
export function repetitions(prints: readonly string[]): number {
  return Math.max(...[1, 2, 3].map((period) => runsOf(prints, period)));
}

function runsOf(prints: readonly string[], period: number): number {
  if (prints.length < period) return 0;
  const pattern = prints.slice(-period).join();
  let count = 0;
  for (let end = prints.length; end >= period && prints.slice(end - period, end).join() === pattern; end -= period) count++;
  return count;
}
