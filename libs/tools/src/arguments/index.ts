/** Judging arguments by a tool's schema, without any tool: for whoever takes arguments from elsewhere than a model. */
import type { ToolDefinition } from '@treadle/core';
import { checkArguments } from './check.ts';
import { createInTime } from './in-time.ts';
import { createSchemaStore } from './schema-store.ts';

/** Why arguments do not fit a tool, in a sentence; null where they do. */
export type ArgumentCheck = (tool: ToolDefinition, input: Readonly<Record<string, unknown>>) => string | null;

export function createArgumentCheck(): ArgumentCheck {
  const deps = { schemas: createSchemaStore(), inTime: createInTime() };
  return (tool, input) => checkArguments(deps, tool, input);
}
