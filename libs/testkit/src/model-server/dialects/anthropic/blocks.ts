/** What a strict server refuses of a single content block. */
import { nameProblems } from '../../strict/tools.ts';
import { fieldProblems, imageProblems, isBlank, isObject, pictureProblems, type Json } from '../../strict/values.ts';
import { isSealedBy, signatureOf } from './signature.ts';

export interface BlockPlace {
  readonly in: 'system' | 'user' | 'assistant' | 'result';
  /** That the request asks: thoughts of others are refused. */
  readonly model: string;
  /** Of the whole request. */
  readonly images: number;
  readonly where: string;
}

interface Kind { readonly fields: readonly string[]; readonly in: readonly BlockPlace['in'][]; readonly problems: (block: Json, place: BlockPlace) => string[] }

const kinds: Readonly<Record<string, Kind>> = {
  text: { fields: ['text', 'cache_control', 'citations'], in: ['system', 'user', 'assistant', 'result'], problems: textProblems },
  image: { fields: ['source', 'cache_control'], in: ['user', 'result'], problems: sourceProblems },
  tool_use: { fields: ['id', 'name', 'input', 'cache_control', 'caller'], in: ['assistant'], problems: useProblems },
  tool_result: { fields: ['tool_use_id', 'content', 'is_error', 'cache_control'], in: ['user'], problems: resultProblems },
  thinking: { fields: ['thinking', 'signature'], in: ['assistant'], problems: thinkingProblems },
  redacted_thinking: { fields: ['data'], in: ['assistant'], problems: redactedProblems },
};

export function blockProblems(block: unknown, place: BlockPlace): string[] {
  const { where } = place;
  if (!isObject(block)) return [`${where}: not an object`];
  const { type, ...rest } = block;
  const kind = typeof type === 'string' && Object.hasOwn(kinds, type) ? kinds[type] : undefined;
  if (kind === undefined || !kind.in.includes(place.in)) return [`${where}: a block ${String(type)} does not belong here`];
  return [...fieldProblems(rest, new Set(kind.fields), where), ...kind.problems(block, place)];
}

function textProblems({ text }: Json, { where }: BlockPlace): string[] {
  if (typeof text !== 'string') return [`${where}: its text is not a string`];
  return isBlank(text) ? [`${where}: empty text`] : [];
}

function sourceProblems({ source }: Json, { where, images }: BlockPlace): string[] {
  if (!isObject(source) || source['type'] !== 'base64') return [`${where}: an image is not base64`];
  const { media_type: mediaType, data } = source;
  if (typeof mediaType !== 'string' || !['image/png', 'image/jpeg', 'image/gif', 'image/webp'].includes(mediaType)) return [`${where}: unknown media_type`];
  const problems = imageProblems(data, where);
  return problems.length > 0 ? problems : pictureProblems(String(data), { mediaType, most: images > 20 ? 2000 : 8000, where });
}

function useProblems({ id, name, input }: Json, { where }: BlockPlace): string[] {
  return [
    ...(typeof id === 'string' && /^[a-zA-Z0-9_-]+$/.test(id) ? [] : [`${where}: call id ${JSON.stringify(id)} is not of the pattern ^[a-zA-Z0-9_-]+$`]),
    ...nameProblems(name, where),
    ...(isObject(input) ? [] : [`${where}: the arguments of call ${String(id)} are not an object`]),
  ];
}

function resultProblems({ content, is_error: isError }: Json, place: BlockPlace): string[] {
  const { where } = place;
  const empty = content === undefined || content === '' || (Array.isArray(content) && content.length === 0);
  if (empty) return isError === true ? [`${where}: an error without content`] : [];
  if (typeof content === 'string') return [];
  if (!Array.isArray(content)) return [`${where}: content is neither a string nor a list`];
  return content.flatMap((block: unknown, index) => blockProblems(block, { ...place, in: 'result', where: `${where}.content[${index}]` }));
}

function thinkingProblems({ thinking, signature }: Json, { where, model }: BlockPlace): string[] {
  return typeof thinking === 'string' && signature === signatureOf(model, thinking) ? [] : [`${where}: Invalid \`signature\` in \`thinking\` block`];
}

function redactedProblems({ data }: Json, { where, model }: BlockPlace): string[] {
  return typeof data === 'string' && isSealedBy(model, data) ? [] : [`${where}: Invalid \`data\` in \`redacted_thinking\` block`];
}
