/** One entry of `agents`. */
import { z } from 'zod';
import { stopHookSchema, validatorSchema } from './answers.ts';
import { limitsSchema } from './limits.ts';
import { plainName } from './names.ts';

export const agentSchema = z.strictObject({
  /** Who it is; stands before the instructions in the system message. */
  soul: z.string().min(1).nullish(),
  instructions: z.string().min(1),
  chain: z.string().default('default'),
  /** `json_action`: for models that cannot call tools; they answer with one JSON object. */
  protocol: z.enum(['native', 'json_action']).default('native'),
  /** Patterns of tool names: `files/*`, `http_get`. */
  tools: z.array(z.string().min(1).max(200)).max(200).default([]),
  limits: limitsSchema.default({}),
  /** In order; each is a fact of the run, by its name. */
  validators: z.array(validatorSchema).max(20).default([]),
  /** In order. */
  stop_hooks: z.array(stopHookSchema).max(20).default([]),
  /** What another agent is told of it, where it may start this one. */
  description: z.string().min(1).max(1000).optional(),
  /** Agents that it may start with the tool `spawn_agent`. */
  subagents: z.array(plainName).max(50).default([]),
});
