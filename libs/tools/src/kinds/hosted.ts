/**
 * The tools that are part of the host: `spawn_agent` and `ask_user`. Offered to agents that name them; a pattern does not mean them. They
 * are carried out by the run itself (the engine starts the other run, a person answers), never here.
 */
import type { AgentSpec } from '@treadle/core';
import type { OfferedTool, ToolKind } from '../kind.ts';

export function createHostedKind(): ToolKind {
  return {
    owns: () => false,
    offered: async (patterns, spec) => [{
      tools: [...spawnAgent(spec), askUser].filter((tool) => patterns.includes(tool.name)), problems: [], missing: [],
    }],
    call: async (run) => ({ type: 'not_started', why: `${run.tool.name} is carried out by the host.` }),
    close: async () => {},
  };
}

const askUser: OfferedTool = {
  name: 'ask_user', builtin: 'ask_user', effect: 'read', parallel: 'serial', timeout_ms: null,
  description: 'Asks the user a question and waits for the answer, which is the result. Only for what cannot be found out otherwise.',
  input_schema: { type: 'object', additionalProperties: false, required: ['question'], properties: { question: { type: 'string', minLength: 1, description: 'What the user is asked.' } } },
};

/** The same start twice is one start: the run has an id before it exists. */
function spawnAgent({ subagents = [] }: AgentSpec): OfferedTool[] {
  if (subagents.length === 0) return [];
  const list = subagents.map(({ name, description }) => `- ${name}: ${description}`).join('\n');
  return [{
    name: 'spawn_agent', builtin: 'spawn_agent', effect: 'idempotent', parallel: 'parallel', timeout_ms: null,
    description: `Starts another agent on a task of its own. It sees nothing of this conversation but the input. The result is its answer. Several started in one reply run at the same time. Agents:\n${list}`,
    input_schema: {
      type: 'object', additionalProperties: false, required: ['agent', 'input'],
      properties: {
        agent: { type: 'string', enum: subagents.map(({ name }) => name), description: `Which agent:\n${list}` },
        input: { type: 'string', minLength: 1, description: 'The task, with everything the agent needs to know.' },
        wait: { type: 'boolean', default: true, description: 'False: the result is the id of the started run at once, and its answer is not waited for.' },
      },
    },
  }];
}
