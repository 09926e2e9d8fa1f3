/** Finds the passage of the read files that fits a question best. */
import { keywords, overlap } from './keywords.ts';

export interface ReadFile { readonly path: string; readonly content: string }

export interface Passage {
  readonly path: string;
  /** As it stands in the file. */
  readonly text: string;
  /** Words of the question that it holds, those of its heading at half their weight, rare words before common ones. */
  readonly score: number;
  /** How many of the question's words it or its heading holds. */
  readonly matched: number;
}

/** Null when no passage holds any word of the question. Equal ones: the earlier. */
export function bestPassage(question: string, files: readonly ReadFile[]): Passage | null {
  const wanted = keywords(question);
  const paragraphs = files.flatMap(paragraphsOf);
  const weights = weigh(wanted, paragraphs);
  let best: Passage | null = null;
  for (const paragraph of paragraphs) {
    const own = new Set(keywords(paragraph.text));
    const heading = new Set(keywords(`${paragraph.heading} ${fileName(paragraph.path)}`));
    let score = 0;
    for (const word of wanted) score += (weights.get(word) ?? 0) * (own.has(word) ? 1 : heading.has(word) ? 0.5 : 0);
    const matched = overlap(wanted, `${paragraph.heading} ${paragraph.text}`);
    if (score > 0 && (best === null || score > best.score)) best = { path: paragraph.path, text: paragraph.text, score, matched };
  }
  return best;
}

interface Paragraph { readonly path: string; readonly heading: string; readonly text: string }

/**
 * Blocks between blank lines, each under the heading that stands above it; headings are no passages themselves, and what ends
 * with a colon takes what it announces along.
 */
function paragraphsOf(file: ReadFile): Paragraph[] {
  const found: { path: string; heading: string; text: string }[] = [];
  let heading = '';
  for (const block of file.content.replaceAll('\r\n', '\n').split(/\n[ \t]*\n/)) {
    const lines = block.trim().split('\n');
    const isHeaded = /^#+\s/.test(lines[0] ?? '');
    while (/^#+\s/.test(lines[0] ?? '')) heading = lines.shift()?.replace(/^#+\s*/, '') ?? '';
    const text = lines.join('\n').trim();
    if (text === '' || /^([-*_=]\s*){3,}$/.test(text)) continue;
    const before = found.at(-1);
    if (before !== undefined && !isHeaded && before.heading === heading && before.text.endsWith(':')) before.text += `\n\n${text}`;
    else found.push({ path: file.path, heading, text });
  }
  return found;
}

function weigh(wanted: readonly string[], paragraphs: readonly Paragraph[]): ReadonlyMap<string, number> {
  const held = paragraphs.map((paragraph) => new Set(keywords(`${paragraph.heading} ${paragraph.text}`)));
  return new Map(wanted.map((word) => {
    const count = held.filter((words) => words.has(word)).length;
    return [word, 1 + Math.log((paragraphs.length + 1) / (count + 1))];
  }));
}

function fileName(path: string): string {
  return path.split(/[\\/]/).at(-1) ?? path;
}
