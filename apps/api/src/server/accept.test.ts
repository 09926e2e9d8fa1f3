import { expect, test } from 'vitest';
import { preferredType } from './accept.ts';

const forms = ['application/json', 'application/x-ndjson', 'text/event-stream'] as const;

test.each([
  [undefined, null], ['', null], ['text/html', null], ['*/*', 'application/json'], ['application/*', 'application/json'], ['text/*', 'text/event-stream'],
  ['text/event-stream', 'text/event-stream'], ['Text/Event-Stream; charset=utf-8', 'text/event-stream'], ['text/event-stream, */*', 'text/event-stream'],
  ['application/x-ndjson;q=0.9, text/event-stream;q=0.8', 'application/x-ndjson'], ['text/event-stream;q=0.5, application/json', 'application/json'],
  ['text/event-stream;q=0', null], ['text/event-stream;q=0, */*', 'application/json'], ['text/event-stream;q=0.000, application/x-ndjson', 'application/x-ndjson'],
  ['application/x-text/event-stream-not', null], ['text/event-streams', null], ['text/event-stream;q=nonsense', null],
  ['application/json, text/event-stream', 'text/event-stream'], ['application/x-ndjson, text/event-stream, application/json', 'text/event-stream'],
])('%s: %s', (accept, type) => {
  expect(preferredType(accept, forms)).toBe(type);
});
