/**
 * Which runs are better left to another worker: those that need what is not configured here. In a rolling deploy the other release's
 * workers have it; where nobody has been heard of for a while that has their agent's version, they go on here as well as they can, and
 * their logs say what is missing.
 *
 * Owns: who was heard of last, and since when nobody has which version.
 */
import { agentSpecOf, agentVersionOf, lackingOf, type LoadedConfig } from '@treadle/config';
import { specOf, type RunState } from '@treadle/core';
import type { SeenWorker } from '@treadle/engine';

/** A worker that has been silent for longer may be dead. It speaks every 5 s. */
const silentMs = 15_000;
/** Versions that are remembered as nobody's; beyond that the oldest is waited for anew. */
const mostMissing = 1000;

export interface ElsewhereOptions {
  /** This worker's. */
  readonly name: string;
  /** How long somebody who has a version is waited for. */
  readonly waitMs: number;
  readonly monotonicMs: () => number;
}

export interface Elsewhere {
  /** Of the agents that are configured here. */
  readonly versions: readonly string[];
  heard(workers: readonly SeenWorker[]): void;
  /** What is missing here; null where nothing is, or nobody else will come who has it. */
  of(state: RunState): readonly string[] | null;
}

export function createElsewhere(config: LoadedConfig, { name, waitMs, monotonicMs }: ElsewhereOptions): Elsewhere {
  const versions: readonly string[] = Object.keys(config.agents).flatMap((agent) => {
    const spec = agentSpecOf(config, agent);
    return spec === undefined ? [] : [agentVersionOf(spec)];
  });
  const missingSince = new Map<string, number>();
  let others = new Set<string>();

  /** Whether a worker that has it is there, or may still come. */
  function awaited(version: string): boolean {
    if (others.has(version)) {
      missingSince.delete(version);
      return true;
    }
    const since = missingSince.get(version) ?? monotonicMs();
    missingSince.set(version, since);
    if (missingSince.size > mostMissing) missingSince.delete(missingSince.keys().next().value!);
    return monotonicMs() - since < waitMs;
  }

  return {
    versions,
    heard(workers) {
      const latest = Math.max(...workers.map(({ last_seen_ms }) => last_seen_ms));
      const there = workers.filter((worker) => worker.name !== name && worker.state === 'running' && latest - worker.last_seen_ms < silentMs);
      others = new Set(there.flatMap(({ agent_versions = [] }) => agent_versions));
    },
    of(state) {
      if (versions.includes(state.agent_version)) return null;
      const lacking = lackingOf(config, specOf(state), state.tools);
      return lacking.length > 0 && awaited(state.agent_version) ? lacking : null;
    },
  };
}
