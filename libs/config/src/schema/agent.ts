/** One entry of `agents`. */
import { z } from 'zod';
import { later } from './later.ts';
import { limitsSchema } from './limits.ts';

export const agentSchema = z.strictObject({
  /** Who it is; stands before the instructions in the system message. */
  soul: z.string().min(1).nullish(),
  instructions: z.string().min(1),
  chain: z.string().default('default'),
  protocol: later('native'),
  /** Patterns of tool names: `files/*`, `http_get`. */
  tools: z.array(z.string().min(1).max(200)).max(200).default([]),
  limits: limitsSchema.default({}),
  validators: later([]),
  stop_hooks: later([]),
  subagents: later([]),
});
