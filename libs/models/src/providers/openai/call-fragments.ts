/**
 * Puts tool calls together from the fragments in which servers of this wire send them. By the book a fragment names its call by
 * `index`, and `arguments` are pieces of text. Really there are servers that give every call index 0 or none, that repeat name, id or
 * everything so far in every fragment, that send a call whole, or its arguments as an object.
 *
 * 1  A fragment begins another call when its id is another, or when its call is whole and the fragment begins a new object, or says a name
 *    again before one. What holds all so far is a repetition; what holds less of it begins anew.
 * 2  Where a fragment has another id but no name, and its call is not whole, the id is the fragment's own: the call keeps its first.
 */
import { callOf } from '../../reply/loose.ts';
import { isObject, joined } from '../../reply/pieces.ts';

export interface AssembledCall { readonly id: unknown; readonly name: unknown; readonly args: unknown }

export interface CallFragments {
  readonly take: (fragments: readonly unknown[]) => void;
  /** In the order in which they began. */
  readonly calls: () => readonly AssembledCall[];
}

interface Slot {
  readonly index: number;
  id: string;
  name: string;
  readonly pieces: string[];
  /** Arguments that came as something else than text. */
  value: unknown;
  /** Once it was whole its name came again without arguments: what comes next tells whether that was another call's beginning. */
  again: boolean;
}

interface Fragment { readonly index: number; readonly indexed: boolean; readonly id: string; readonly name: string; readonly args: unknown }

export function createCallFragments(): CallFragments {
  const slots: Slot[] = [];

  function slotOf(fragment: Fragment): Slot {
    const { index, indexed, id, name } = fragment;
    const nameless = id === '' && name === '';
    const bare = !indexed && nameless;
    // Fragments of several calls may take turns under one index.
    const own = id === '' ? undefined : slots.findLast((each) => each.id === id && (!indexed || each.index === index));
    const last = bare ? slots.at(-1) : own ?? slots.findLast((each) => (indexed ? each.index === index : id === '' ? each.index === index : each.id === id || (each.id === '' && each.index === index)));
    if (last !== undefined && !beginsAnother(last, fragment)) return last;
    const { id: before = '', name: again = '' } = nameless ? last ?? {} : {};
    const slot: Slot = { index, id: nameless ? before : id, name: again, pieces: [], value: undefined, again: false };
    slots.push(slot);
    return slot;
  }

  return {
    take: (fragments) => {
      fragments.forEach((raw, position) => {
        const fragment = readFragment(raw, position);
        const slot = slotOf(fragment);
        if (slot.id === '') slot.id = fragment.id;
        slot.again ||= fragment.name !== '' && (fragment.args ?? '') === '' && isWhole(slot);
        slot.name = joinedName(slot, fragment.name);
        if (typeof fragment.args === 'string') slot.pieces.push(fragment.args);
        else if (fragment.args !== undefined && fragment.args !== null) slot.value = fragment.args;
      });
    },
    calls: () => slots.map((slot) => ({ id: slot.id, name: slot.name, args: slot.value ?? joined(slot.pieces) })),
  };
}

function readFragment(raw: unknown, position: number): Fragment {
  const { index: said, id, name, args } = callOf(raw);
  const index = typeof said === 'string' && /^\d{1,9}$/.test(said) ? Number(said) : said;
  const indexed = typeof index === 'number';
  return { index: indexed ? index : position, indexed, id: text(id), name: text(name), args };
}

function beginsAnother(slot: Slot, { id, name, args }: Fragment): boolean {
  if (id !== '' && slot.id !== '' && id !== slot.id) return name !== '' || slot.value !== undefined || isWhole(slot);
  if (id === '' && name === '') return slot.again && typeof args === 'string' && args.trimStart().startsWith('{');
  if (name !== '' && slot.name !== '' && !slot.name.startsWith(name) && !name.startsWith(slot.name) && (slot.value !== undefined || isWhole(slot))) return true;
  if (slot.value !== undefined) return typeof args === 'object' && args !== null && JSON.stringify(args) !== JSON.stringify(slot.value);
  if (typeof args !== 'string' || !args.trimStart().startsWith('{')) return false;
  const sofar = joined(slot.pieces);
  if (!isObject(sofar) || args === sofar) return false;
  return holdsPlace(sofar) ? id === '' && isObject(args) : !args.startsWith(sofar);
}

function holdsPlace(args: string): boolean {
  return args.trim() === '{}';
}

/** Looked at its end first: reading all so far for every fragment would take long. */
function isWhole({ pieces }: Slot): boolean {
  return pieces.at(-1)?.trimEnd().endsWith('}') === true && isObject(joined(pieces));
}

/** Sent again, sent on (all so far), or sent in pieces. Once there are arguments the name is whole. */
function joinedName(slot: Slot, name: string): string {
  if (name === '' || name === slot.name) return slot.name;
  if (name.startsWith(slot.name)) return name;
  return slot.pieces.join('') === '' && slot.value === undefined ? slot.name + name : slot.name;
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
