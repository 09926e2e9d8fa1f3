/**
 * Server-Sent Events out of bytes (WHATWG HTML, section "Server-sent events"): cut anywhere, with any of the three line ends.
 */

export interface SseMessage { readonly id: string | null; readonly event: string; readonly data: string }

/** A parser for one stream: give it chunks, take whole messages. Comments count as nothing but life. */
export function createSseParser(): (chunk: Uint8Array) => SseMessage[] {
  const decoder = new TextDecoder();
  let buffer = '';
  let fields: { id: string | null; event: string; data: string[] } = { id: null, event: '', data: [] };

  function take(line: string): SseMessage[] {
    if (line === '') {
      const done = fields;
      fields = { id: null, event: '', data: [] };
      return done.data.length === 0 ? [] : [{ id: done.id, event: done.event === '' ? 'message' : done.event, data: done.data.join('\n') }];
    }
    const colon = line.indexOf(':');
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '');
    if (name === 'id') fields.id = value;
    else if (name === 'event') fields.event = value;
    else if (name === 'data') fields.data.push(value);
    return [];
  }

  return (chunk) => {
    buffer += decoder.decode(chunk, { stream: true });
    const messages: SseMessage[] = [];
    for (;;) {
      const end = /\r\n|\n|\r(?!$)/.exec(buffer);
      if (end === null) return messages;
      messages.push(...take(buffer.slice(0, end.index)));
      buffer = buffer.slice(end.index + end[0].length);
    }
  };
}
