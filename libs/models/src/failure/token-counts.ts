/**
 * Numbers in a refusal that say which of two things was too large: the same words stand for both.
 */

/** So many tokens were asked for at once, and so few are allowed per minute: waiting can never help. */
export function neverFits(text: string): boolean {
  const found = /limit:? ([\d,]{1,15}).{0,40}requested:? ([\d,]{1,15})/is.exec(text);
  return found !== null && count(found[2]) > count(found[1]);
}

/**
 * The tokens left for the reply, where prompt and reply together were too much but the prompt alone fits. Null where the text
 * says nothing of the kind, 0 where the prompt does not fit.
 */
export function roomForOutput(text: string): number | null {
  const sum = /([\d,]{1,15}) \+ ([\d,]{1,15}) > ([\d,]{1,15})/.exec(text);
  if (sum !== null) return room(count(sum[3]), count(sum[1]));
  const given = /must be <= ([\d,]{1,15})\. Given: ([\d,]{1,15}) `?inputs`? tokens/i.exec(text);
  if (given !== null) return room(count(given[1]), count(given[2]));
  const window = /context (?:length|limit|window|size)(?: is| of)?(?: only)?:? ([\d,]{1,15})/i.exec(text)?.[1];
  if (window === undefined) return null;
  const parts = /([\d,]{1,15}) (?:in the messages|of text input)(?:, ([\d,]{1,15}) (?:in the functions|of tool input))?,? (?:and )?([\d,]{1,15}) in the (?:completion|output)/i.exec(text);
  if (parts !== null) return room(count(window), count(parts[1]) + count(parts[2]));
  const input = /(?:has|passed|have) ([\d,]{1,15}) input tokens/i.exec(text)?.[1];
  return input === undefined ? null : room(count(window), count(input));
}

/** The tokens that a reply may have, where a refusal of the output limit says so. */
export function allowedOutput(text: string): number | null {
  const left = roomForOutput(text);
  if (left !== null) return left > 0 ? left : null;
  const most = mostWords.exec(text);
  return most === null ? null : count(most.slice(1).find((each) => each !== undefined));
}

const mostWords = new RegExp([
  String.raw`(?:at most|maximum of|up to) ([\d,]{1,15}) (?:completion |output )?tokens`,
  String.raw`max_\w{0,20}tokens:? [\d,]{1,15} > ([\d,]{1,15})`,
  String.raw`\[\s?\d{1,5}, ?([\d,]{1,15})\s?\]`,
  'between \\d{1,5} and ([\\d,]{1,15})',
  'max_\\w{0,20}tokens[`\'"]?.{0,40}(?:less than or equal to|no more than|not exceed|cannot exceed|<=|at most|maximum(?: value)? (?:is|of)) ?[`\'"]?([\\d,]{1,15})',
  'maximum value (?:of|for) [`\'"]?max_\\w{0,20}tokens[`\'"]? is ([\\d,]{1,15})',
].join('|'), 'i');

function room(window: number, prompt: number): number {
  return Math.max(0, window - prompt);
}

function count(digits: string | undefined): number {
  return Number((digits ?? '0').replaceAll(',', ''));
}
