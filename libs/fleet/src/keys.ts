/** Every key of the fleet's common knowledge, in a hash slot of its own: its scripts see all of it at once, in a Cluster too. */

export interface FleetKeys {
  /** Stream: what processes have seen, newest last. */
  readonly outcomes: string;
  /** Hash: breaker id → JSON of what is open. */
  readonly breakers: string;
  /** Hash: target → JSON of the bench. */
  readonly benches: string;
  /** Hash: worker → JSON of what it last said, with when. */
  readonly workers: string;
  /** Hash: id → "created JSON" of an API key that was issued. */
  readonly apiKeys: string;
  /** Hash: SHA-256 of an API key → its id. */
  readonly apiKeyHashes: string;
  /** Zset: ids of API keys, of a tenant or (null) of all. */
  apiKeyIds(tenant: string | null): string;
  /** String, as long as a window: the number of the last exchange of one process. */
  said(process_id: string): string;
  /** String with a lease: who probes. */
  probe(breaker_id: string): string;
  /**
   * Of one credential (scripts/includes/rates.lua): granted (hash: sixtieth of a minute → requests and tokens) · flying (zset: reservation by
   * end of lease) · calls (hash: reservation → what it was granted) · line (zset: run by place) · bookings (hash: run → what it waits for).
   */
  rates(target: string): string[];
  /**
   * Of a chain's trial (scripts/includes/canary-keys.lua): its state (hash: definition, model, stage, status, since, version, judged, last_decision)
   * · runs (hash: run → "arm start", then "arm start end flags active_s cost") · order of the runs of each arm (zset by start) · totals of each arm (hash
   * of sums) · decisions (list of JSON, newest first).
   */
  canary(chain: string): string[];
}

export function fleetKeys(prefix: string): FleetKeys {
  const slot = `{${prefix}:fleet}`;
  return {
    outcomes: `${slot}:outcomes`, breakers: `${slot}:breakers`, benches: `${slot}:benches`, workers: `${slot}:workers`, apiKeys: `${slot}:api_keys`, apiKeyHashes: `${slot}:api_key_hashes`,
    apiKeyIds: (tenant) => (tenant === null ? `${slot}:api_key_ids` : `${slot}:api_key_ids:${tenant}`),
    said: (process_id) => `${slot}:said:${process_id}`,
    probe: (breaker_id) => `${slot}:probe:${breaker_id}`,
    rates: (target) => ['granted', 'flying', 'calls', 'line', 'bookings'].map((part) => `${slot}:rates:${part}:${target}`),
    canary: (chain) => ['state', 'runs', 'order:canary', 'order:control', 'totals:canary', 'totals:control', 'decisions'].map((part) => `${slot}:canary:${part}:${chain}`),
  };
}
