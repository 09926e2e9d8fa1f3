import { raw, startModelServer } from '@treadle/testkit';
import { expect, it } from 'vitest';
import { baseUrlOf, callOnce, endOfText, gatewayTo, moreText, reasonOf, requestOf, textSoFar, wires } from '../testing.ts';
import { createReplySize } from './reply-size.ts';

const mebi = 1024 * 1024;
const token = Buffer.from(`data: ${'x'.repeat(300)}\n\n`);

it('counts what a reply says, and little of the frames around it', () => {
  const size = createReplySize(mebi);
  const tokens = 8 * mebi / token.length;
  for (let sent = 1; sent < tokens - 1; sent++) size.add(token);
  expect(() => { for (let sent = 0; sent < 3; sent++) size.add(token); }).toThrow('too large');
  expect(() => { createReplySize(mebi).add(Buffer.alloc(mebi + 1, 'x')); }).toThrow('too large');
});

it.each(wires)('a long answer that comes token by token is read, one line without an end is not: %s', async (wire) => {
  const padded = (text: string): string => moreText(wire, text).replace('{', `{"system_fingerprint":"${'f'.repeat(200)}",`);
  const long = [textSoFar(wire, 'a'), padded(' b').repeat(40_000), endOfText(wire)];
  const endless = [textSoFar(wire, 'a'), moreText(wire, 'x'.repeat(9 * mebi))];
  const server = await startModelServer({ dialect: wire, script: [raw(long), raw(endless)] });
  const gateway = gatewayTo(baseUrlOf(wire, server.url));
  const { outcome } = await callOnce(gateway, requestOf({}, wire));
  expect(outcome).toMatchObject({ type: 'replied', reply: { text: `a${' b'.repeat(40_000)}` } });
  expect(reasonOf((await callOnce(gateway, requestOf({}, wire))).outcome)).toBe('stream_interrupted');
  gateway.close();
  await server.close();
});
