/** Asks a server which models it has: what `treadle doctor` goes by. */
import { classifyFailure } from '../failure/classify.ts';
import type { Served, ServedQuestion } from '../provider.ts';
import { HttpRefusal, refusing } from './refusal.ts';

export interface ModelList {
  /** Behind the base URL. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  /** The field that holds the list, and the field of each that names it. */
  readonly list: string;
  readonly name: string;
  /** Whether a listed name is the one that is asked for. */
  readonly means?: (listed: string, asked: string) => boolean;
}

export async function listedModel({ path, headers, list, name, means = Object.is }: ModelList, { connection, model, signal, fetch, nowMs }: ServedQuestion): Promise<Served> {
  try {
    const response = await refusing(fetch)(`${connection.base_url.replace(/\/+$/, '')}${path}`, { headers: { accept: 'application/json', ...headers }, signal });
    const names = namesIn(await response.text(), { list, name });
    if (names === null) return { type: 'untold' };
    return names.some((each) => means(each, model)) ? { type: 'served' } : { type: 'not_served', others: names };
  } catch (error) {
    // Of the servers that imitate a wire not all have its list.
    if (error instanceof HttpRefusal && [404, 405, 501].includes(error.status)) return { type: 'untold' };
    return { type: 'failed', failure: classifyFailure(error, { stage: 'connecting', nowMs: nowMs(), promptFillsWindow: () => false }) };
  }
}

function namesIn(text: string, { list, name }: Pick<ModelList, 'list' | 'name'>): readonly string[] | null {
  try {
    const listed: unknown = (JSON.parse(text) as Record<string, unknown>)[list];
    return Array.isArray(listed) ? listed.map((each: unknown) => (each as Record<string, unknown> | null)?.[name]).filter((each) => typeof each === 'string') : null;
  } catch {
    return null;
  }
}
