/** Patterns of tool names: `*` stands for any run of characters, everything else for itself. */

/** Whether `name` fits `pattern`, whole. Linear: patterns come from people, names from servers. */
export function matches(pattern: string, name: string): boolean {
  const parts = pattern.split('*');
  const first = parts[0] ?? '';
  if (parts.length === 1) return name === first;
  const last = parts.at(-1) ?? '';
  if (name.length < first.length + last.length || !name.startsWith(first) || !name.endsWith(last)) return false;
  let from = first.length;
  const end = name.length - last.length;
  for (const part of parts.slice(1, -1)) {
    const at = name.indexOf(part, from);
    if (at === -1 || at + part.length > end) return false;
    from = at + part.length;
  }
  return true;
}

/** Whether any name that begins with `beginning` could fit: what spares starting a server that nobody asks for. */
export function mayMatchBeginning(pattern: string, beginning: string): boolean {
  const star = pattern.indexOf('*');
  if (star === -1) return pattern.startsWith(beginning);
  const literal = pattern.slice(0, star);
  return literal.startsWith(beginning) || beginning.startsWith(literal);
}
