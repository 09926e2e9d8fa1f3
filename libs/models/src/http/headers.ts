/**
 * The headers of a call are ours alone: the vendors' clients add what they find in the environment, and tell the machine they run on.
 */

/** What a client may say itself. */
const kept = ['content-type', 'accept', 'anthropic-version'];

/** `fetch` with the client's plain headers and `own`, and no other. */
export function withHeaders(inner: typeof fetch, own: Readonly<Record<string, string>>): typeof fetch {
  return (input, init = {}) => {
    const given = new Headers(init.headers);
    const headers = kept.flatMap((name) => (given.has(name) ? [[name, given.get(name) as string]] : []));
    return inner(input, { ...init, headers: Object.fromEntries([...headers, ['user-agent', 'treadle'], ...Object.entries(own)]) as Record<string, string> });
  };
}
