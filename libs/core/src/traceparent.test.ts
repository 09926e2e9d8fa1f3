import { expect, test } from 'vitest';
import { readTraceparent, traceIdOf } from './traceparent.ts';

const trace = '4bf92f3577b34da6a3ce929d0e0e4736';
const span = '00f067aa0ba902b7';

test.each([
  ['as it is', `00-${trace}-${span}-01`, `00-${trace}-${span}-01`],
  ['not sampled', `00-${trace}-${span}-00`, `00-${trace}-${span}-00`],
  ['flags that nobody knows yet', `00-${trace}-${span}-fe`, `00-${trace}-${span}-00`],
  ['a later version, with more behind it', `cc-${trace}-${span}-03-what-comes`, `00-${trace}-${span}-01`],
])('%s', (_, header, read) => {
  expect(readTraceparent(header)).toBe(read);
  expect(traceIdOf(read)).toBe(trace);
});

test.each([
  undefined, null, 1, ['00'], '', `00-${trace}-${span}`, `00-${trace}-${span}-01-more`, `ff-${trace}-${span}-01`, `00-${'0'.repeat(32)}-${span}-01`, `00-${trace}-${'0'.repeat(16)}-01`,
  `00-${trace.toUpperCase()}-${span}-01`, `00-${trace}-${span}-01, 00-${trace}-${span}-01`, `00-${trace.slice(1)}-${span}-01`, ` 00-${trace}-${span}-01`, `cc-${trace}-${span}-01x`,
])('%j is no traceparent', (header) => {
  expect(readTraceparent(header)).toBeNull();
});
