/** How the text of one variable becomes a value. A parser says what was expected; it never repeats the text, which may be a secret. */

export type Parsed<T> = { readonly type: 'ok'; readonly value: T } | { readonly type: 'bad'; readonly expected: string };
export type Parser<T> = (text: string) => Parsed<T>;

function ok<T>(value: T): Parsed<T> {
  return { type: 'ok', value };
}

function bad(expected: string): Parsed<never> {
  return { type: 'bad', expected };
}

export function anyText(text: string): Parsed<string> {
  return ok(text);
}

export function matching(form: RegExp, expected: string): Parser<string> {
  return (text) => (form.test(text) ? ok(text) : bad(expected));
}

/** A whole number from `min` to `max`. */
export function wholeNumber(min: number, max: number): Parser<number> {
  return (text) => {
    const value = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
    return value >= min && value <= max ? ok(value) : bad(`a whole number from ${min} to ${max}`);
  };
}

/** A number from `min` to `max`, fractions allowed. */
export function decimal(min: number, max: number): Parser<number> {
  return (text) => {
    const value = /^\d{1,9}(\.\d{1,9})?$/.test(text) ? Number(text) : Number.NaN;
    return value >= min && value <= max ? ok(value) : bad(`a number from ${min} to ${max}`);
  };
}

export function oneOf<const T extends readonly string[]>(...values: T): Parser<T[number]> {
  return (text) => (values.includes(text) ? ok(text as T[number]) : bad(`one of ${values.join(', ')}`));
}

/** An http or https URL, without a trailing slash. */
export function httpUrl(text: string): Parsed<string> {
  const good = URL.canParse(text) && /^https?:$/.test(new URL(text).protocol);
  return good ? ok(text.replace(/\/+$/, '')) : bad('an http:// or https:// URL');
}

const hostAndPort = /^(?:\[[0-9a-fA-F:]+\]|[A-Za-z0-9._-]+)(?::(\d{1,5}))?$/;

/** As Ollama itself takes it: a URL, or a host with or without a port (11434). */
export function ollamaHost(text: string): Parsed<string> {
  if (text.includes('://')) return httpUrl(text);
  const found = hostAndPort.exec(text);
  if (found === null || Number(found[1] ?? 0) > 65_535) return bad('an http:// or https:// URL, or host:port');
  return ok(`http://${text}${found[1] === undefined ? ':11434' : ''}`);
}

const redisForms = 'redis://host:port, rediss://host:port, redis-sentinel://host1,host2/master or redis-cluster://host1,host2';

/** One server, Sentinel or Cluster; the form is checked here, the servers when they are asked. */
export function redisUrl(text: string): Parsed<string> {
  const many = /^redis-(sentinel|cluster):\/\/(?:([^@/]*)@)?([^@/]+)(?:\/([^@/]*))?$/.exec(text);
  if (many === null) return /^rediss?:\/\/./.test(text) && URL.canParse(text) ? ok(text) : bad(redisForms);
  const [, kind, userinfo = '', hosts = '', path = ''] = many;
  const fits = hosts.split(',').every(isServer) && isDecodable(userinfo) && isDecodable(path);
  // A Cluster has one database; Sentinels know several masters.
  return fits && (kind === 'cluster' ? path === '' || path === '0' : path !== '') ? ok(text) : bad(redisForms);
}

function isServer(text: string): boolean {
  const found = hostAndPort.exec(text);
  const port = Number(found?.[1] ?? 1);
  return found !== null && port >= 1 && port <= 65_535;
}

function isDecodable(text: string): boolean {
  try {
    decodeURIComponent(text);
    return true;
  } catch {
    return false;
  }
}

/** As OpenTelemetry takes them: `name=value,name=value`, values as in an address. */
export function headerList(text: string): Parsed<string> {
  const fits = text.split(',').every((pair) => /^\s*[!#$%&'*+.^_`|~0-9A-Za-z-]+\s*=[^=].*$/.test(pair) && isDecodable(pair));
  return fits ? ok(text) : bad('name=value pairs with commas between, special characters as %XX');
}

/** An address to listen on. */
export function listenHost(text: string): Parsed<string> {
  return /^[A-Za-z0-9._:-]+$/.test(text) ? ok(text) : bad('an IP address or a host name, without a port');
}

/** Whether only this machine can reach it. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host);
}
