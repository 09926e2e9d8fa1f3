/** Names of things in the configuration. They become labels of metrics and parts of tool names, so their letters are few. */
import { z } from 'zod';

/** Agents, chains, models: 1 to 64 of letters, digits, `_`, `-`, `.`, `:`. */
export const plainName = z.string().regex(/^[A-Za-z0-9][A-Za-z0-9_.:-]{0,63}$/, 'expected 1 to 64 letters, digits, "_", "-", "." or ":", beginning with a letter or digit');

/** MCP servers: the part before the `/` of their tools' names. */
export const serverName = z.string().regex(/^[A-Za-z0-9][A-Za-z0-9_-]{0,31}$/, 'expected 1 to 32 letters, digits, "_" or "-", beginning with a letter or digit');

/** Tools that are not a server's. */
export const toolName = z.string().regex(/^[A-Za-z0-9_-]{1,64}$/, 'expected 1 to 64 letters, digits, "_" or "-"');

/** Names of tools that come with the host: one name must mean one tool. */
export const hostTools: readonly string[] = ['http_get', 'read_blob', 'spawn_agent', 'ask_user'];

/** Milliseconds that a timer can hold. */
export const timeoutMs = z.int().min(1).max(2_147_483_647);

/** A regular expression. Compiled here, so that a bad one is a fault of the file and not of a run. */
export const pattern = z.string().min(1).max(10_000).superRefine((text, context) => {
  try {
    new RegExp(text);
  } catch (error) {
    context.addIssue({ code: 'custom', message: `expected a regular expression: ${error instanceof Error ? error.message : String(error)}` });
  }
});
