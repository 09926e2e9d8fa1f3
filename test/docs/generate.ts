/**
 * Tables in the docs that are made from the code: `npm run docs:generate` writes them, a test compares.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { errorTypes, recoveryTable, type ErrorType } from '@treadle/core';

export const machinePage = join(import.meta.dirname, '../../docs/turn-machine.md');

/** The moves of `decide-failed.ts` that come before the table; a test plays each. */
const ownMoves: Partial<Record<ErrorType, string>> = {
  empty_response: '`reask`, up to `max_reasks`',
  output_truncated: '`continue_prompt` (text) or `enlarge_output` (a cut call), up to `max_continuations`',
  context_overflow: '`reactive_compact`, then `aggressive_snip`',
  payload_too_large: '`reactive_compact`, then `aggressive_snip`',
  image_too_large: '`shrink_image` twice, then `remove_image`',
};

export function recoverySection(): string {
  const rows = errorTypes.map((type) => {
    const { same_model_retries, fallback, exhausted } = recoveryTable[type];
    return `| \`${type}\` | ${ownMoves[type] ?? ''} | ${same_model_retries === 0 ? 'no' : `${same_model_retries} times`} | ${fallback ? 'yes' : 'no'} | \`${exhausted}\` |`;
  });
  return ['| error_type | its own move first | again on the same model | next model | else the run ends |', '|---|---|---|---|---|', ...rows].join('\n');
}

/** The page with its table as the code has it now. */
export function withTable(page: string): string {
  return page.replace(/<!-- recovery:begin -->[^]*<!-- recovery:end -->/, `<!-- recovery:begin -->\n${recoverySection()}\n<!-- recovery:end -->`);
}

if (process.argv[1] === import.meta.filename) writeFileSync(machinePage, withTable(readFileSync(machinePage, 'utf8')));
