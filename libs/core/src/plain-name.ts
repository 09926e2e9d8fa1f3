/** A tool's name in the characters that every provider takes: `/` becomes `__`, any other illegal one `_`, and it begins with a letter or `_`. */
export function plainName(name: string): string {
  return name.replaceAll('/', '__').replaceAll(/[^A-Za-z0-9_-]/gu, '_').replace(/^(?![A-Za-z_])/, '_');
}
