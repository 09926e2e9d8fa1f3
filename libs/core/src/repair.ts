/**
 * What a transcript needs before it can be sent, whatever has happened to it: results without a call go, and so do replies whose
 * calls have lost their results. The fold never makes such a transcript; an old or foreign log may.
 */
import type { KeptMessage } from './message.ts';

/** Null where nothing is to be mended. */
export function repairOf(messages: readonly KeptMessage[]): { readonly removed: readonly (readonly [number, number])[]; readonly problem: string } | null {
  const removed: [number, number][] = [];
  const problems = new Set<string>();
  const drop = (message: KeptMessage, problem: string): void => {
    removed.push([message.seq, message.seq]);
    problems.add(problem);
  };
  for (let index = 0; index < messages.length; index++) {
    const message = messages[index] as KeptMessage;
    if (message.role === 'tool') drop(message, 'a result without its call');
    if (message.role !== 'assistant' || message.calls.length === 0) continue;
    const results = resultsBehind(messages, index);
    const fits = results.length === message.calls.length && results.every((result, at) => result.tool_use_id === message.calls[at]?.tool_use_id);
    if (!fits) for (const each of [message, ...results]) drop(each, 'a call without its result');
    index += results.length;
  }
  return removed.length === 0 ? null : { removed, problem: [...problems].join('; ') };
}

function resultsBehind(messages: readonly KeptMessage[], index: number): (KeptMessage & { role: 'tool' })[] {
  const results: (KeptMessage & { role: 'tool' })[] = [];
  for (let at = index + 1; at < messages.length; at++) {
    const message = messages[at] as KeptMessage;
    if (message.role !== 'tool') break;
    results.push(message);
  }
  return results;
}
