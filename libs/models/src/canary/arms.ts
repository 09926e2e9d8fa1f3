/**
 * Which arm of a trial a new run is in, and how its chain is ordered then.
 *
 * A run's place among all runs is a hash of its id and the chain's name, so it is the same wherever and however often it is asked for,
 * and trials of two chains draw different runs.
 */
import { createHash } from 'node:crypto';
import type { ChainSpec } from '@treadle/core';
import type { Arms, Assignment, CanaryStore } from '@treadle/engine';

/** 0 to below 100. A run is the canary's at every stage above its bucket. */
export function bucketOf(run_id: string, chain: string): number {
  const hash = createHash('sha256').update(`${chain}\n${run_id}`).digest();
  return hash.readUInt32BE(0) / 2 ** 32 * 100;
}

/** The canary first in its own arm, last in the other; the others keep their order. The trial's place is pinned beside. */
export function armedChain(chain: ChainSpec, model: string, { arm, stage }: { readonly arm: 'canary' | 'control'; readonly stage: number }): ChainSpec {
  const canary = chain.models.filter((each) => each.name === model);
  const others = chain.models.filter((each) => each.name !== model);
  return { ...chain, models: arm === 'canary' ? [...canary, ...others] : [...others, ...canary], canary: { model, arm, stage } };
}

export interface ArmsOptions {
  /** A creation waits for each answer no longer than this. Default 500. */
  readonly timeoutMs?: number;
  /** Told when nobody answered: the run is made as if there were no trial. */
  readonly onUnknown?: (error: unknown) => void;
}

/** Asks the fleet; a chain without a canary costs nothing. Where nobody knows, the run is control and counts in no arm. */
export function createArms(canaries: Pick<CanaryStore, 'assign' | 'withdraw'>, { timeoutMs = 500, onUnknown = () => undefined }: ArmsOptions = {}): Arms {
  return {
    assign: async (chain, { run_id, run_at_ms }) => {
      if (chain.canary === undefined) return chain;
      const { model } = chain.canary;
      const asked = canaries.assign({ chain: chain.name, model, run_id, bucket: bucketOf(run_id, chain.name), run_at_ms });
      const answer = await inTime(asked, timeoutMs).catch((error: unknown): Assignment => {
        onUnknown(error);
        return { type: 'none' };
      });
      return armedChain(chain, model, answer.type === 'none' ? { arm: 'control', stage: 0 } : answer);
    },
    withdraw: async (chain, run_id) => {
      if (chain.canary !== undefined) await inTime(canaries.withdraw(chain.name, run_id), timeoutMs).catch(onUnknown);
    },
  };
}

async function inTime<T>(promise: Promise<T>, timeoutMs: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => { timer = setTimeout(() => { reject(new Error('no answer in time')); }, timeoutMs); });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
    promise.catch(() => undefined);
  }
}
