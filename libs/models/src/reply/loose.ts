/** What the wires say, in the looser ways in which servers that imitate them say it. */
import { asObject } from './judge.ts';

export interface TextPart { readonly text: string; readonly thinks: boolean }

/** Text; or, of some servers, a part or a list of parts, the model's thinking among them. */
export function partsOf(content: unknown): TextPart[] {
  if (typeof content === 'string') return [{ text: content, thinks: false }];
  return listOf(content).flatMap((raw): TextPart[] => {
    if (typeof raw === 'string') return [{ text: raw, thinks: false }];
    const part = asObject(raw);
    if (part['type'] === 'thinking') return partsOf(part['thinking']).map((each) => ({ ...each, thinks: true }));
    return typeof part['text'] === 'string' ? [{ text: part['text'], thinks: false }] : [];
  });
}

/** A list, or the one that stands in its place; nothing is an empty one. */
export function listOf(value: unknown): readonly unknown[] {
  if (Array.isArray(value)) return value;
  return value !== null && typeof value === 'object' ? [value] : [];
}

/** A call has its name and arguments under `function`, or beside its id, which some count. */
export function callOf(raw: unknown): { readonly index: unknown; readonly id: unknown; readonly name: unknown; readonly args: unknown } {
  const { index, id, function: inner, ...beside } = asObject(raw);
  const { name, arguments: args } = asObject(inner ?? beside);
  return { index, id: typeof id === 'number' ? String(id) : id, name, args };
}

/** Some name the field in every frame, with nothing in it. */
export function saysError({ error }: Readonly<Record<string, unknown>>): boolean {
  return error !== undefined && error !== null && error !== '' && error !== false;
}

/** That the output limit has cut the reply, in every vendor's word for it. */
export function isCut(finish_raw: string): boolean {
  return /^(length|max_tokens|max_output_tokens|max_completion_tokens|model_length)$/i.test(finish_raw);
}

/** That a filter has ended the reply. */
export function isBlocked(finish_raw: string): boolean {
  return /^(content_filter|safety|recitation|blocklist|prohibited_content|spii|image_safety)$/i.test(finish_raw);
}
