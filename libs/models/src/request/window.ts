/** How full a request makes its model's window, by a rough count of our own: one token per four bytes, images left out. */
import type { ModelRequest } from '@treadle/core';

/** A refusal without a word then means that the prompt was too long. */
const nearlyFull = 0.8;

export function fillsWindow({ system, messages, tools, model }: ModelRequest): boolean {
  const schemas = tools.map(({ description, input_schema }) => [description, input_schema]);
  const text = JSON.stringify([system, messages, schemas], (_, value: unknown) => (isImage(value) ? null : value));
  return Buffer.byteLength(text) / 4 > nearlyFull * model.context_window;
}

function isImage(value: unknown): boolean {
  return value !== null && typeof value === 'object' && 'media_type' in value && 'data' in value;
}
