/** Keeps secrets out of logs: by the keys they stand under, and by their own values wherever they turn up. */

const mark = '[redacted]';
const maxDepth = 8;
/** Shorter values would black out ordinary words. */
const shortestSecret = 6;

/** Compared without case, `-` and `_`. */
const secretKeys = new Set([
  'authorization', 'proxyauthorization', 'apikey', 'xapikey', 'password', 'passwd', 'secret', 'token', 'accesstoken', 'refreshtoken', 'idtoken', 'cookie',
  'setcookie', 'credential', 'credentials', 'privatekey', 'secretaccesskey', 'accesskeyid', 'adminkey', 'clientsecret',
]);

/** A copy in which values under telling keys are replaced; what lies deeper than 8 levels becomes a note. */
export function redactKeys(value: unknown, depth = maxDepth): unknown {
  if (typeof value !== 'object' || value === null || value instanceof Error || value instanceof Date) return value;
  if (depth === 0) return '[too deep]';
  if (Array.isArray(value)) return value.map((item) => redactKeys(item, depth - 1));
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, isSecretKey(key) ? mark : redactKeys(item, depth - 1)]));
}

/** The telling keys as they are commonly spelt, for places where only exact paths can be named. */
export const secretPaths = ['authorization', 'Authorization', 'api_key', 'apiKey', 'x-api-key', 'password', 'token', 'access_token', 'accessToken', 'secret', 'cookie', 'credentials']
  .map((key) => (key.includes('-') ? `["${key}"]` : key));

function isSecretKey(key: string): boolean {
  return secretKeys.has(key.toLowerCase().replaceAll(/[-_]/g, ''));
}

/** Replaces every occurrence of known secrets in a finished line, also as JSON and URLs write them. Values under 6 characters are left. */
export function valueRedactor(secrets: readonly string[]): (line: string) => string {
  const forms = secrets.filter((secret) => secret.length >= shortestSecret)
    .flatMap((secret) => [secret, JSON.stringify(secret).slice(1, -1), encodeURIComponent(secret.toWellFormed())]);
  // Longest first: a secret that begins with another one must not leave its end behind.
  const ordered = [...new Set(forms)].sort((a, b) => b.length - a.length);
  return (line) => ordered.reduce((text, secret) => text.replaceAll(secret, () => mark), line);
}
