import type { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { expect, test } from 'vitest';
import { readTools } from './list-tools.ts';

/** A server that answers with these pages, by its cursor; read as the SDK reads answers. */
function serving(pages: Readonly<Record<string, object>>) {
  const asked: string[] = [];
  const request = async ({ params }: { params: { cursor?: string } }, schema: { parse(value: unknown): unknown }) => {
    asked.push(params.cursor ?? 'first');
    return schema.parse(pages[params.cursor ?? 'first'] ?? {});
  };
  return { client: { request } as unknown as Client, asked };
}

const many = (count: number, entry: unknown) => Array.from({ length: count }, () => entry);

test.each<[string, Readonly<Record<string, object>>, number]>([
  ['its end is not said', { first: { tools: [1] } }, 1],
  ['its end is null', { first: { tools: [1], nextCursor: null } }, 1],
  ['its end is an empty text', { first: { tools: [1], nextCursor: 'b' }, b: { tools: [2, 3], nextCursor: '' } }, 3],
  ['there are none', { first: { tools: null } }, 0],
  ['a page is longer than any list of arguments', { first: { tools: many(300_000, {}) } }, 300_000],
])('a list is read whole where %s', async (_, pages, count) => {
  expect(await readTools(serving(pages).client, 1_000)).toHaveLength(count);
});

test.each<[string, Readonly<Record<string, object>>, string, number]>([
  ['leads back to the same page', { first: { tools: [1], nextCursor: 'a' }, a: { tools: [1], nextCursor: 'a' } }, 'its list comes to no end', 2],
  ['goes round', { first: { tools: [], nextCursor: 'a' }, a: { tools: [], nextCursor: 'b' }, b: { tools: [], nextCursor: 'a' } }, 'more than 100 pages', 100],
  ['is heavy in texts', { first: { tools: many(10, { name: 'a', description: 'x'.repeat(1024 * 1024) }), nextCursor: 'a' }, a: { tools: many(10, { name: 'a', description: 'x'.repeat(1024 * 1024) }) } }, 'its list is too long', 2],
  ['is heavy in names', { first: { tools: many(20, { [`k${'x'.repeat(1024 * 1024)}`]: 1 }) } }, 'its list is too long', 1],
])('a list is given up that %s', async (_, pages, problem, pagesAsked) => {
  const { client, asked } = serving(pages);
  await expect(readTools(client, 1_000)).rejects.toThrow(problem);
  expect(asked).toHaveLength(pagesAsked);
});
