/**
 * The JSON value that an answer gives. Models put words and fences around it; the rule is:
 *
 * 1  The whole text, if it is JSON.
 * 2  Else the last block between ``` fences that is JSON.
 * 3  Else the object or array that the text ends with, words before it: the longest one.
 *
 * Words behind a bare object are not accepted: nobody could say which of several objects is meant.
 */
export type FoundJson = { readonly type: 'found'; readonly value: unknown } | { readonly type: 'none' };

export function findJson(text: string): FoundJson {
  const whole = parsed(text);
  if (whole.type === 'found') return whole;
  const fenced = inLastFence(text);
  return fenced.type === 'found' ? fenced : atEnd(text.trimEnd());
}

const fence = /```[^\n`]*\n([^]*?)```/g;

function inLastFence(text: string): FoundJson {
  for (const block of [...text.matchAll(fence)].reverse()) {
    const found = parsed(block[1] ?? '');
    if (found.type === 'found') return found;
  }
  return { type: 'none' };
}

/** Each opening bracket is tried from the left; the time limit around it bounds what brackets without end would cost. */
function atEnd(text: string): FoundJson {
  if (!/[}\]]$/.test(text)) return { type: 'none' };
  const opening = /[{[]/g;
  for (let at = opening.exec(text); at !== null; at = opening.exec(text)) {
    const found = parsed(text.slice(at.index));
    if (found.type === 'found') return found;
  }
  return { type: 'none' };
}

function parsed(text: string): FoundJson {
  try {
    return { type: 'found', value: JSON.parse(text) as unknown };
  } catch {
    return { type: 'none' };
  }
}
