import { expect, test } from 'vitest';
import { decodeEvent, decodeWith, type Lift } from './codec.ts';

const lifts: readonly Lift[] = [
  { type: 'steer', from: 1, lift: ({ text, ...event }) => ({ ...event, content: text }) },
  { type: 'steer', from: 2, lift: (event) => ({ ...event, content: String(event['content']).trim() }) },
];
const envelope = { seq: 4, ts: 1, run_id: 'run_a', turn_number: 1, epoch: 1 };

test.each([
  ['the first form', { type: 'steer', ...envelope, text: ' go ' }, { type: 'steer', ...envelope, content: 'go', v: 3 }],
  ['the second form', { type: 'steer', ...envelope, v: 2, content: ' go ' }, { type: 'steer', ...envelope, content: 'go', v: 3 }],
  ['the present form', { type: 'steer', ...envelope, v: 3, content: ' go ' }, { type: 'steer', ...envelope, v: 3, content: ' go ' }],
  ['an event that never changed', { type: 'turn_end', ...envelope, duration: 1 }, { type: 'turn_end', ...envelope, duration: 1 }],
])('%s is read as the present one', (_, written, read) => {
  expect(decodeWith(lifts, JSON.stringify(written))).toEqual(read);
});

test('what is no JSON throws', () => { expect(() => decodeEvent('{')).toThrow(SyntaxError); });
