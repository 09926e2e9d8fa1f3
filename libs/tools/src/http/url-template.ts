/**
 * The address of one call: a template with `{name}` in its path and query. A value can fill its place and nothing more: it is
 * percent-encoded, and where it would be a step up in the path, it is refused.
 */

export type FilledUrl =
  | { readonly type: 'ok'; readonly url: URL; /** Arguments that have no place in the template. */ readonly rest: Readonly<Record<string, unknown>> }
  | { readonly type: 'unfit'; readonly why: string };

const placeholder = /\{([^{}]*)\}/g;

export function fillUrl(template: string, input: Readonly<Record<string, unknown>>): FilledUrl {
  const used = new Set<string>();
  const unfit: string[] = [];
  const filled = template.replaceAll(placeholder, (_, name: string) => {
    used.add(name);
    const value = Object.hasOwn(input, name) ? input[name] : undefined;
    if (typeof value !== 'string' && typeof value !== 'number' && typeof value !== 'boolean') unfit.push(`"${name}" must be text, a number or a boolean`);
    return encodeURIComponent(String(value).toWellFormed());
  });
  const path = filled.split(/[?#]/, 1)[0] ?? '';
  const segments = path.replace(/^[a-z]+:\/\/[^/]*/i, '').split('/').slice(1);
  if (segments.some((segment) => /^(\.|%2e){1,2}$/i.test(segment))) unfit.push('a value may not lead to another path');
  if (emptied(template, path)) unfit.push('a value in the path may not be empty');
  const url = URL.parse(filled);
  if (url === null) unfit.push('the values do not make an address');
  if (url === null || unfit.length > 0) return { type: 'unfit', why: unfit.join('; ') };
  return { type: 'ok', url, rest: Object.fromEntries(Object.entries(input).filter(([name]) => !used.has(name))) };
}

/** Whether a segment that the template fills has come out empty. */
function emptied(template: string, path: string): boolean {
  const segments = path.split('/');
  return (template.split(/[?#]/, 1)[0] ?? '').split('/').some((segment, index) => segment !== '' && segments[index] === '');
}

/** Adds arguments to the query: lists as repeated names, objects as JSON, null not at all. */
export function withQuery(url: URL, rest: Readonly<Record<string, unknown>>): URL {
  for (const [name, value] of Object.entries(rest)) {
    for (const each of Array.isArray(value) ? value as unknown[] : [value]) {
      if (each !== null && each !== undefined) url.searchParams.append(name, typeof each === 'object' ? JSON.stringify(each) : String(each));
    }
  }
  return url;
}
