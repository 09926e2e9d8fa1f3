/**
 * The words and codes of an error body, in whichever of the vendors' forms it comes: `error` as text or as an object, a flat
 * body, a list of errors, an upstream's whole error as text inside, FastAPI's `detail`, an HTML page, or the text itself.
 */

export interface ErrorBody {
  /** For people: the words of the outermost error, then its type and code. Not cut: of a key that a cut went through nobody would know what is left. */
  readonly said: string;
  /** All words, the inner ones too: what the rules of texts look at. */
  readonly text: string;
  /** Lower case, the most specific first. */
  readonly codes: readonly string[];
  /** A status inside the body, where one stands for a number; an error under 200 says here what it is. */
  readonly status: number | null;
  /** The objects the error is made of, from the outside in. */
  readonly objects: readonly Fields[];
}

export type Fields = Readonly<Record<string, unknown>>;

const deepest = 5;
/** Errors of a list that are looked at. */
const longestList = 10;
const longestText = 16_000;

export function readErrorBody(raw: string): ErrorBody {
  const root = parse(raw);
  if (root === null) {
    const said = isHtml(raw) ? pageTitle(raw) : raw.trim();
    return { said, text: said.slice(0, longestText), codes: [], status: null, objects: [] };
  }
  const objects = unwrap(root, deepest);
  const words = objects.flatMap(wordsOf);
  const said = isHtml(words[0] ?? '') ? pageTitle(words[0] ?? '') : outerWords(root) ?? (words.length === 0 ? JSON.stringify(root) : words.join(' '));
  return {
    said: said.trim(), text: [...words, ...typesOf(objects)].join('\n').slice(0, longestText), codes: codesOf(objects),
    status: statusOf(objects), objects,
  };
}

/** The body and every object that may say what is wrong: `error`, `metadata`, `details`, an upstream's body as text. */
function unwrap(value: Fields, depth: number): Fields[] {
  if (depth === 0) return [];
  const inner = innerKeys.flatMap((key) => listOf(value[key])).flatMap((each) => {
    const child = typeof each === 'string' ? parse(each) : asFields(each);
    return child === null ? [] : unwrap(child, depth - 1);
  });
  return [value, ...inner];
}

const innerKeys = ['error', 'errors', 'metadata', 'details', 'innererror', 'message', 'raw', 'detail', 'response', 'data', 'fault'];
const wordKeys = [
  'message', 'Message', 'error', 'errors', 'detail', 'msg', 'raw', 'description', 'error_description', 'error_message', 'error_msg', 'faultstring', 'reason', 'title', 'text',
];

function wordsOf(fields: Fields): string[] {
  return wordKeys.flatMap((key) => listOf(fields[key])).filter((each) => typeof each === 'string').filter((each) => parse(each) === null);
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value.slice(0, longestList) : [value];
}

function typesOf(objects: readonly Fields[]): string[] {
  return objects.flatMap((fields) => [fields['type'], fields['code']]).filter((each) => typeof each === 'string');
}

function outerWords({ error, message }: Fields): string | null {
  if (typeof error === 'string') return error;
  const inner = asFields(error);
  if (inner === null) return typeof message === 'string' ? message : null;
  const parts = [inner['message'], inner['type'], inner['code']].filter((part) => typeof part === 'string' && part !== '');
  return parts.length === 0 ? null : parts.join(' ');
}

/** A vendor's own code before the kind of error, the inner before the outer. */
function codesOf(objects: readonly Fields[]): string[] {
  const inwardFirst = [...objects].reverse();
  const keys = ['error_code', 'limit_source', 'code', 'type', 'status'];
  const found = keys.flatMap((key) => inwardFirst.map((fields) => fields[key])).filter((each) => typeof each === 'string' || typeof each === 'number');
  return [...new Set(found.map((each) => String(each).toLowerCase()))];
}

/** Only a field that is a number: one in a text may be anything. */
function statusOf(objects: readonly Fields[]): number | null {
  for (const fields of objects) {
    for (const value of [fields['code'], fields['status'], fields['status_code']]) {
      if (typeof value === 'number' && Number.isInteger(value) && value >= 400 && value <= 599) return value;
    }
  }
  return null;
}

function isHtml(text: string): boolean {
  return /^\s*<(!doctype|html)/i.test(text);
}

function pageTitle(text: string): string {
  const title = /<title>([^<]{1,200})<\/title>/i.exec(text)?.[1];
  return `an HTML page${title === undefined ? '' : ` ("${title.trim()}")`}`;
}

function parse(text: string): Fields | null {
  // What is trimmed holds a byte order mark, too.
  const trimmed = text.trim();
  if (!/^[{[]/.test(trimmed)) return null;
  try {
    const value: unknown = JSON.parse(trimmed);
    return Array.isArray(value) ? { errors: value } : asFields(value);
  } catch {
    return null;
  }
}

function asFields(value: unknown): Fields | null {
  return value !== null && typeof value === 'object' && !Array.isArray(value) ? value as Fields : null;
}
