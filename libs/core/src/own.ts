/**
 * What a record holds under a key that somebody else has chosen (a model, a server, a person): `valueOf` and its like are keys as any
 * others, and what every object has is never found under them.
 */
export function own<T>(record: Readonly<Record<string, T>> | undefined, key: string): T | undefined {
  return record !== undefined && Object.hasOwn(record, key) ? record[key] : undefined;
}
