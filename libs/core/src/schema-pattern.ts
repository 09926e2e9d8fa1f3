/**
 * A pattern of a JSON Schema as its author means it: by characters (`\p{L}`, `.` for an emoji) where it can be read so, else as the older
 * form, which knows escapes like `\-` that the newer one refuses.
 *
 * @throws SyntaxError where it is no pattern in either.
 */
export function schemaPattern(pattern: string): RegExp {
  try {
    return new RegExp(pattern, 'u');
  } catch {
    return new RegExp(pattern);
  }
}
