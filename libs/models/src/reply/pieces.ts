/**
 * Arguments that come in pieces of JSON text. Pieces are joined first; only where that is no JSON are they read as repetitions of all so
 * far, or as behind an empty object that only held their place.
 */

export function joined(pieces: readonly string[]): string {
  const [first = '', ...rest] = pieces;
  const whole = asOne(pieces) ?? (first.trim() === '{}' ? asOne(rest) : null);
  return whole ?? pieces.join('');
}

/** Null where neither reading is JSON. */
function asOne(pieces: readonly string[]): string | null {
  const plain = pieces.join('');
  if (plain.trim() === '' || isJson(plain)) return plain;
  let grown = '';
  for (const piece of pieces) grown = grown !== '' && piece.startsWith(grown) ? piece : grown + piece;
  return isJson(grown) ? grown : null;
}

export function isObject(value: string): boolean {
  return value.trimStart().startsWith('{') && isJson(value);
}

function isJson(value: string): boolean {
  try {
    JSON.parse(value);
    return true;
  } catch {
    return false;
  }
}
