/** One text for one value: JSON with keys in code-unit order at every depth. What is hashed or compared must not depend on their order. */
export function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (_key, item: unknown) => item !== null && typeof item === 'object' && !Array.isArray(item)
    ? Object.fromEntries(Object.entries(item).sort(([a], [b]) => (a < b ? -1 : 1))) : item) ?? 'null';
}
