/** Keeps credentials out of what people and models read: providers echo headers in their error pages. */
import type { ModelConnection } from '../provider.ts';

/** Characters. What core keeps of a detail is longer; the beginning says what it was. */
const longestDetail = 1000;

/** Shorter values would black out ordinary words. */
const shortestOther = 6;

/** What must never be shown of a connection, and `others` of the host. The longest first: one that begins with another must not leave its end behind. */
export function secretsOf(connection: ModelConnection, others: readonly string[] = []): readonly string[] {
  const secrets = [...connection.other_keys ?? [], ...(connection.api_key === undefined ? [] : [connection.api_key]), ...others.filter((each) => each.length >= shortestOther)];
  const url = URL.parse(connection.base_url);
  if (url !== null && url.password !== '') secrets.push(url.password, safeDecode(url.password));
  // Also as JSON and addresses write them.
  return [...new Set(secrets.flatMap((secret) => [secret, JSON.stringify(secret).slice(1, -1), encodeURIComponent(secret.toWellFormed())]))].filter((secret) => secret.length > 0).sort((a, b) => b.length - a.length);
}

/** `detail` without the secrets, without anything that stands behind `Bearer`, on a bounded length, well formed. */
export function redact(detail: string, secrets: readonly string[]): string {
  let text = detail;
  for (const secret of secrets) text = text.replaceAll(secret, '[redacted]');
  text = text.replace(/\b(bearer|basic)\s+(?!\[redacted\])[\w.~+/=-]+/gi, '$1 [redacted]');
  return text.slice(0, longestDetail).toWellFormed();
}

function safeDecode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
