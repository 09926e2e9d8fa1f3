/** One entry of an MCP server's tool list, as our catalogue takes it. Hints count only from servers the host trusts. */
import { wellFormed } from '@treadle/core';
import { z } from 'zod';
import type { OfferedTool } from '../kind.ts';
import { usualSchema } from './usual-schema.ts';

const toolSchema = z.looseObject({
  // Whole characters, and none that steers a terminal.
  name: z.string().min(1).max(200).regex(/^[^\p{Cc}\p{Cs}]+$/u),
  description: z.string().nullish(),
  title: z.string().nullish(),
  inputSchema: z.unknown(),
  annotations: z.looseObject({ readOnlyHint: z.boolean().nullish(), idempotentHint: z.boolean().nullish(), destructiveHint: z.boolean().nullish() }).nullish().catch(null),
  execution: z.looseObject({ taskSupport: z.string().nullish() }).nullish().catch(null),
});

/** Characters of a tool's description and schema, which every request to a model carries. */
const largestTool = 128 * 1024;
/** Levels of a schema. Whoever reads it goes down them, and has an end. */
const deepestSchema = 64;

/** The tool, or why it cannot be offered. */
export function offeredTool(server: string, entry: unknown, trusted: boolean): OfferedTool | string {
  const parsed = toolSchema.safeParse(entry);
  if (!parsed.success) return `MCP server ${server} lists a tool without a usable name.`;
  const { name, description, title, inputSchema, annotations, execution } = parsed.data;
  if (execution?.taskSupport === 'required') return `Tool ${server}/${name} is left out: it can only be run as a task.`;
  if (isDeeper(inputSchema, deepestSchema)) return `Tool ${server}/${name} is left out: its input schema is nested deeper than ${deepestSchema} levels.`;
  const size = (description ?? '').length + (JSON.stringify(inputSchema) ?? '').length;
  if (size > largestTool) return `Tool ${server}/${name} is left out: its description and schema are ${size} characters long; at most ${largestTool} are taken.`;
  const readOnly = trusted && annotations?.readOnlyHint === true;
  const harmless = trusted && annotations?.destructiveHint === false;
  const idempotent = trusted && annotations?.idempotentHint === true;
  return {
    name: `${server}/${name}`, description: (description ?? title ?? '').toWellFormed(), input_schema: usualSchema(wellFormed(inputSchema, deepestSchema + 1)),
    effect: readOnly ? 'read' : idempotent ? 'idempotent' : null, parallel: readOnly ? 'parallel' : null, timeout_ms: null, characters: size,
    ...(harmless ? { destructive: false } : {}),
  };
}

function isDeeper(value: unknown, most: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return most === 0 || Object.values(value).some((each) => isDeeper(each, most - 1));
}
