/**
 * Ids: `run_…`, `ses_…`, `sch_…` followed by 32 hex digits of a UUIDv7, so that they sort by time.
 * The last two digits name the shard: everything of a run lives in one hash slot.
 */

export type IdKind = 'run' | 'ses' | 'sch';

const form = /^(run|ses|sch)_[0-9a-f]{32}$/;

/** Whether `text` has the form of an id of this kind. */
export function isId(kind: IdKind, text: string): boolean {
  return form.test(text) && text.startsWith(`${kind}_`);
}

/**
 * An id in the given shard. `uuid` is a UUIDv7 in any notation; its last byte is replaced by the shard,
 * which costs 8 of its 62 random bits.
 */
export function idIn(kind: IdKind, shard: number, uuid: string): string {
  const hex = uuid.replaceAll('-', '').toLowerCase();
  return `${kind}_${hex.slice(0, 30)}${shard.toString(16).padStart(2, '0')}`;
}

/** The shard that an id names, from 0. */
export function shardOf(id: string): number {
  return Number.parseInt(id.slice(-2), 16);
}
