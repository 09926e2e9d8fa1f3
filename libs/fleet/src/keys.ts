/**
 * Every key of the fleet is spelt here and nowhere else. All lie in one slot, `{prefix:fleet}`, apart from the runs': they are few, and
 * a script may touch several.
 *
 * Of a chain's trial  canary:<chain> (hash: definition, model, stage, status, since, version, judged, last_decision)
 *                     …:runs (hash: run id → "arm start" or "arm start end flags active_s cost") · …:order:<arm> (zset: run ids by start)
 *                     …:totals:<arm> (hash of sums) · …:decisions (list of JSON, newest first)
 */
const legalPrefix = /^[A-Za-z0-9_.:-]{1,64}$/;

export interface FleetKeys {
  /** KEYS 1 to 7 of every canary script (scripts/includes/canary-keys.lua). */
  canary(chain: string): string[];
}

/** Throws `RangeError` for a prefix with other characters than letters, digits, `_ . : -`. */
export function createFleetKeys(prefix: string): FleetKeys {
  if (!legalPrefix.test(prefix)) throw new RangeError(`the prefix "${prefix}" may hold only letters, digits and _ . : - (1 to 64 of them)`);
  const base = `{${prefix}:fleet}:`;
  return {
    canary: (chain) => ['', ':runs', ':order:canary', ':order:control', ':totals:canary', ':totals:control', ':decisions'].map((part) => `${base}canary:${chain}${part}`),
  };
}
