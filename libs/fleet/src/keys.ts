/** Every key of the fleet's common knowledge, in a hash slot of its own: its scripts see all of it at once, in a Cluster too. */

export interface FleetKeys {
  /** Stream: what processes have seen, newest last. */
  readonly outcomes: string;
  /** Hash: breaker id → JSON of what is open. */
  readonly breakers: string;
  /** Hash: target → JSON of the bench. */
  readonly benches: string;
  /** String with a lease: who probes. */
  probe(breaker_id: string): string;
  /** What one credential has been granted. */
  rates(target: string): string;
}

export function fleetKeys(prefix: string): FleetKeys {
  const slot = `{${prefix}:fleet}`;
  return {
    outcomes: `${slot}:outcomes`, breakers: `${slot}:breakers`, benches: `${slot}:benches`,
    probe: (breaker_id) => `${slot}:probe:${breaker_id}`, rates: (target) => `${slot}:rates:${target}`,
  };
}
