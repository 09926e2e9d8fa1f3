/**
 * The blocks of a reply in the making, in the order in which they begin: not every server counts them, and some give each the index 0.
 *
 * 1  What has an index belongs to the newest block that began with it; what belongs to none is passed over.
 * 2  By the book a block begins empty; what stands in it all the same counts.
 */
import { isObject, joined } from '../../reply/pieces.ts';
import { createTextAssembler } from '../../reply/text-assembler.ts';

type Fields = Readonly<Record<string, unknown>>;

/** `text` is what its deltas have brought. */
export interface Block {
  readonly kind: string;
  readonly start: Fields;
  text: string;
  signature: string;
  /** Of a call's input. */
  readonly pieces: string[];
  /** An input that came as something else than text. */
  value: unknown;
}

export interface Blocks {
  readonly begin: (index: unknown, start: Fields) => void;
  readonly add: (index: unknown, delta: Fields) => void;
  readonly end: (index: unknown) => void;
  readonly all: () => readonly Block[];
}

export function createBlocks(onText: (increment: string) => void): Blocks {
  const assembler = createTextAssembler();
  const blocks: Block[] = [];
  const current = new Map<unknown, Block>();

  function take(block: Block, kind: string, increment: string): void {
    if (block.kind !== kind || increment === '') return;
    const shown = kind === 'text' ? assembler.take(increment) : increment;
    block.text += shown;
    if (kind === 'text') onText(shown);
  }

  return {
    begin: (index, start) => {
      const block: Block = { kind: text(start['type']), start, text: '', signature: text(start['signature']), pieces: [], value: undefined };
      blocks.push(block);
      current.set(index, block);
      if (block.kind === 'text') take(block, 'text', text(start['text']));
      if (block.kind === 'thinking') take(block, 'thinking', text(start['thinking']));
    },
    add: (index, delta) => {
      const block = current.get(index);
      if (block === undefined) return;
      switch (delta['type']) {
        case 'text_delta': return take(block, 'text', text(delta['text']));
        case 'thinking_delta': return take(block, 'thinking', text(delta['thinking']));
        case 'input_json_delta': return takeInput(block, delta['partial_json']);
        case 'signature_delta': block.signature += text(delta['signature']);
      }
    },
    /** What was held back of a character that never became whole. */
    end: (index) => {
      const block = current.get(index);
      if (block?.kind !== 'text') return;
      const rest = assembler.end();
      block.text += rest;
      onText(rest);
    },
    all: () => blocks,
  };
}

function takeInput(block: Block, part: unknown): void {
  if (typeof part === 'string') block.pieces.push(part);
  else if (part !== null && part !== undefined) block.value = part;
}

/** What came in pieces; where that is nothing, what the block began with. */
export function inputOf({ start, pieces, value }: Block): unknown {
  if (value !== undefined) return value;
  const came = joined(pieces);
  return came === '' || (came.trim() === '{}' && isObject(JSON.stringify(start['input'] ?? null))) ? start['input'] : came;
}

export function text(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
