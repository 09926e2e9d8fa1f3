/** Server-sent events, as the wires that use them write their replies. */

/** One event. Data that is not a string is sent as JSON. */
export function sse(data: unknown, event?: string): string {
  const text = typeof data === 'string' ? data : JSON.stringify(data);
  return `${event === undefined ? '' : `event: ${event}\n`}data: ${text}\n\n`;
}
