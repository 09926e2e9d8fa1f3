/** The trace that a run belongs to, as W3C Trace Context writes it: `00-<trace id>-<span id>-<flags>`. */

const form = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;

/** What a caller says of its trace, in the version that we write; null for what is not valid, and then it counts as not said. */
export function readTraceparent(header: unknown): string | null {
  const [, version = 'ff', trace = '', span = '', flags = '', more] = typeof header === 'string' ? form.exec(header) ?? [] : [];
  if (version === 'ff' || (version === '00' && more !== undefined)) return null;
  if (/^0+$/.test(trace) || /^0+$/.test(span)) return null;
  // Of the flags one is known: sampled.
  return `00-${trace}-${span}-0${Number.parseInt(flags, 16) & 1}`;
}

export function traceIdOf(traceparent: string): string {
  return traceparent.slice(3, 35);
}
