/** Addresses and headers of what is reached over HTTP. */
import { z } from 'zod';

/** Null where it can be asked; a user or password in an address would end up in messages. */
function problemOf(text: string): string | null {
  const url = URL.parse(text);
  if (url === null || !/^https?:$/.test(url.protocol)) return 'expected an http or https URL';
  return url.username === '' && url.password === '' ? null : 'expected a URL without user and password; send them in headers';
}

const checked = (judge: (text: string) => string | null) => z.string().superRefine((text, context) => {
  const message = judge(text);
  if (message !== null) context.addIssue({ code: 'custom', message });
});

export const httpAddress = checked(problemOf);

/** The host must not depend on what a model says. */
export const urlTemplate = checked((text) => {
  const origin = /^[a-z]+:\/\/[^/?#]*/i.exec(text)?.[0] ?? '';
  if (/[{}]/.test(origin)) return 'expected {names} in path and query alone, never in the host';
  if (/[{}]/.test(text.replaceAll(/\{[A-Za-z0-9_-]+\}/g, ''))) return 'expected {name} with letters, digits, "_" or "-" between the braces';
  return problemOf(text.replaceAll(/[{}]/g, ''));
});

export function placeholdersOf(template: string): string[] {
  return [...template.matchAll(/\{([A-Za-z0-9_-]+)\}/g)].map((match) => match[1] as string);
}

/** `scheme://host:port`. */
export const httpOrigin = checked((text) => {
  const problem = problemOf(text);
  const url = URL.parse(text);
  if (problem !== null || url === null) return problem;
  return url.pathname === '/' && url.search === '' && url.hash === '' ? null : 'expected an origin: scheme, host and port, nothing behind';
});

/** They are the host's own. */
const ownHeaders: readonly string[] = ['host', 'connection', 'content-length', 'transfer-encoding', 'idempotency-key'];

const headerName = z.string().regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/, 'expected the name of a header')
  .refine((name) => !ownHeaders.includes(name.toLowerCase()), 'this header is set by the host');

/** `"env:NAME"` as a value is a secret. */
export const httpHeaders = z.record(headerName, z.string().regex(/^[\t\x20-\x7e\x80-\xff]*$/, 'expected the value of a header, without line breaks'));
