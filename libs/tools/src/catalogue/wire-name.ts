/**
 * Names that every provider takes: 1 to 64 letters, digits, `_`, `-`, beginning with a letter or `_`.
 *
 * The rule: `/` becomes `__`, every other illegal character `_`, and in front of a digit or `-` there is one more. A name longer than 64 is
 * cut to 55 and gets `_` and the first 8 hex digits of the sha256 of its own full name. Where several tools of one agent come to the same
 * result, each of them gets that ending, so that the outcome does not depend on their order. A tool that a run gets later takes no name
 * that another one has had.
 */
import { createHash } from 'node:crypto';
import { plainName } from '@treadle/core';

const maxLength = 64;

/** Wire names by tool name, all different. `names` must be different from each other. */
export function wireNames(names: readonly string[]): ReadonlyMap<string, string> {
  const plain = names.map((name) => [name, plainName(name)] as const);
  const uses = new Map<string, number>();
  for (const [, wire] of plain) uses.set(wire, (uses.get(wire) ?? 0) + 1);
  const taken = new Set(plain.filter(([, wire]) => wire.length <= maxLength && uses.get(wire) === 1).map(([, wire]) => wire));
  return new Map(plain.map(([name, wire]) => {
    if (wire.length <= maxLength && uses.get(wire) === 1) return [name, wire];
    return [name, withHash(name, wire, taken)];
  }));
}

/** `wire`, or where that is taken already another name for the same tool, which is taken from now on. */
export function freeWireName(name: string, wire: string, taken: Set<string>): string {
  if (taken.has(wire)) return withHash(name, plainName(name), taken);
  taken.add(wire);
  return wire;
}

function withHash(name: string, wire: string, taken: Set<string>): string {
  const hash = createHash('sha256').update(name).digest('hex');
  for (let digits = 8; ; digits += 4) {
    const made = `${wire.slice(0, maxLength - 1 - digits)}_${hash.slice(0, digits)}`;
    if (taken.has(made)) continue;
    taken.add(made);
    return made;
  }
}
