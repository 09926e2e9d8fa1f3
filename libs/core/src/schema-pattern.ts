/**
 * Patterns of JSON Schemas as their authors mean them: by characters (`\p{L}`, `.` for an emoji) where they can be read so, else in the
 * older form, which knows escapes like `\-` that the newer one refuses.
 *
 * @throws SyntaxError where it is no pattern in either.
 */
function readPattern(pattern: string): RegExp {
  try {
    return new RegExp(pattern, 'u');
  } catch {
    return new RegExp(pattern);
  }
}

/** In the shape in which a compiler of schemas takes it; `code` is its name in what that compiles. */
export const schemaPattern = Object.assign(readPattern, { code: 'schemaPattern' });
