/**
 * A script without end, for load: each conversation asks for a tool so many times, then answers.
 */
import { text, tool, type WholeReply } from './replies.ts';
import type { ChatBody } from './dialects/index.ts';
import type { ModelScript } from './script.ts';

export interface ToolTurns {
  /** Tool turns before the answer. */
  readonly turns: number;
  /** Wire name of the tool; default the first one that the request offers. */
  readonly name?: string;
  /** Arguments of the call in a tool turn, counted from 0. */
  readonly args?: (turn: number) => Readonly<Record<string, unknown>>;
  readonly answer?: (body: ChatBody) => string;
  /** Makes the whole reply slower or differently cut. */
  readonly shape?: (reply: WholeReply) => WholeReply;
}

/** Knows how far a conversation is by counting its tool results, so any number of conversations may share it. */
export function toolTurns(options: ToolTurns): ModelScript {
  const shape = options.shape ?? ((reply) => reply);
  return (body) => {
    const turn = toolResults(body);
    if (turn >= options.turns) return shape(text(options.answer?.(body) ?? `answered after ${turn} results`));
    return shape(tool(`call_${turn}`, options.name ?? firstTool(body), options.args?.(turn) ?? {}));
  };
}

/** Results behind the last words of the user, on any wire: a message of the role `tool`, or blocks in a message of the user. */
function toolResults(body: ChatBody): number {
  const results = (body.messages ?? []).map(({ role, content }) => {
    if (role === 'tool') return 1;
    return Array.isArray(content) ? content.filter((block: { readonly type?: string }) => block.type === 'tool_result').length : 0;
  });
  const asked = (body.messages ?? []).findLastIndex(({ role }, index) => role === 'user' && results[index] === 0);
  return results.slice(asked + 1).reduce((sum, count) => sum + count, 0);
}

function firstTool(body: ChatBody): string {
  const [first] = (body['tools'] ?? []) as readonly { readonly name?: string; readonly function?: { readonly name?: string } }[];
  return first?.function?.name ?? first?.name ?? 'no_tool_was_offered';
}
