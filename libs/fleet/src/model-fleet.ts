/**
 * What the processes of a fleet know together about models, in Redis (the port `ModelFleet`, F1–F5).
 *
 * Owns: this process's name, the number of its last exchange, and how far it has read what the others have seen.
 * 1. Each method is one script, and harmless when it is sent twice.
 * 2. What others have seen is answered once: of two exchanges under way at once, the answer that comes second leaves out what the first had.
 * 3. An exchange that throws may have been heard; what it told is not to be told again as if it were new.
 */
import { randomUUID } from 'node:crypto';
import type { Bench, FleetView, ModelFleet, OpenBreaker, Outcomes, Reservation } from '@treadle/engine';
import { fleetKeys } from './keys.ts';
import { createScriptRunner, unknownReply, type RedisClient, type Reply } from './script-runner.ts';

export interface ModelFleetOptions {
  /** Of the role `fleet`: without a queue for commands that cannot be sent. */
  readonly redis: RedisClient;
  /** The installation's prefix. */
  readonly prefix: string;
  /** How long anybody waits for an answer, ms. Default 1,000. */
  readonly callTimeoutMs?: number;
  /** How long outcomes are remembered, ms. Default 10,000. */
  readonly windowMs?: number;
  /** What rates call a minute, ms. Default 60,000; tests take shorter ones. */
  readonly minuteMs?: number;
  /** How long after its turn a run in line holds up those behind it, ms. Default 5,000. */
  readonly lapseMs?: number;
  /** How long after its turn a run finds its place in line again, ms. Default 600,000. */
  readonly forgetMs?: number;
  readonly limits?: Partial<FleetLimits>;
}

export interface FleetLimits {
  /** Default 1,000. */
  readonly breakers: number;
  /** Default 1,000. */
  readonly benches: number;
  /** Runs in the line of one credential, at most 7,000; those beyond are told to wait without a place. Default 5,000. */
  readonly waiting: number;
}

const scriptNames = ['bench', 'close', 'drop_probe', 'exchange', 'open', 'renew', 'reserve', 'settle', 'take_probe', 'unbench'] as const;
type ScriptName = (typeof scriptNames)[number];

export function createModelFleet(options: ModelFleetOptions): ModelFleet {
  const { redis, prefix, callTimeoutMs = 1000, windowMs = 10_000, minuteMs = 60_000, lapseMs = 5000, forgetMs = 600_000 } = options;
  const limits: FleetLimits = { breakers: 1000, benches: 1000, waiting: 5000, ...options.limits };
  const keys = fleetKeys(prefix);
  const run = createScriptRunner<ScriptName>(redis, scriptNames, { callTimeoutMs });

  /** The reply, which begins with one of `words`. */
  async function reply<Word extends string>(script: ScriptName, words: readonly Word[], call: { keys: readonly string[]; args: readonly (string | number)[] }): Promise<readonly [Word, ...unknown[]]> {
    const answer = await run(script, call);
    if (!(words as readonly string[]).includes(answer[0])) throw unknownReply(script, answer);
    return answer as readonly [Word, ...unknown[]];
  }

  const exchange = exchanging({ windowMs, ask: (said, args) => reply('exchange', ['known'], { keys: [keys.outcomes, keys.breakers, keys.benches, keys.said(said)], args }) });

  return {
    exchange,

    async open({ target, error_type, for_ms, forced }) {
      const args = [`${target}:${error_type}`, target, error_type, whole('for_ms', for_ms), forced ? 1 : 0, limits.breakers];
      await reply('open', ['opened', 'as_it_was'], { keys: [keys.breakers], args });
    },

    async close(breaker_id, probe_token = '') {
      const [word] = await reply('close', ['closed', 'not_open', 'not_yours'], { keys: [keys.breakers, keys.probe(breaker_id)], args: [breaker_id, probe_token] });
      return word === 'closed';
    },

    async takeProbe(breaker_id, token, lease_ms) {
      const args = [breaker_id, token, atLeast1('lease_ms', lease_ms)];
      const [word] = await reply('take_probe', ['taken', 'not_now'], { keys: [keys.breakers, keys.probe(breaker_id)], args });
      return word === 'taken';
    },

    async dropProbe(breaker_id, token) {
      await reply('drop_probe', ['dropped', 'not_yours'], { keys: [keys.probe(breaker_id)], args: [token] });
    },

    async bench({ target, reason, for_ms }) {
      await reply('bench', ['benched', 'as_it_was'], { keys: [keys.benches], args: [target, reason, whole('for_ms', for_ms), limits.benches] });
    },

    async unbench(target) {
      const [word] = await reply('unbench', ['unbenched', 'not_benched'], { keys: [keys.benches], args: [target] });
      return word === 'unbenched';
    },

    async reserve(reservation) {
      const ask = JSON.stringify({ ...asked(reservation), minute_ms: minuteMs, lapse_ms: lapseMs, forget_ms: forgetMs, line_limit: limits.waiting });
      const [word, wait_ms] = await reply('reserve', ['granted', 'wait'], { keys: keys.rates(reservation.target), args: [ask] });
      return word === 'granted' ? { type: word } : { type: word, wait_ms: Number(wait_ms) };
    },

    async renew(target, id, lease_ms) {
      await reply('renew', ['renewed', 'not_held'], { keys: keys.rates(target), args: [id, atLeast1('lease_ms', lease_ms), forgetMs] });
    },

    async settle(target, id, used_tokens) {
      await reply('settle', ['settled', 'not_held'], { keys: keys.rates(target), args: [id, whole('used_tokens', used_tokens)] });
    },
  };
}

interface Exchanging { readonly windowMs: number; readonly ask: (process_id: string, args: readonly (string | number)[]) => Promise<Reply> }

function exchanging({ windowMs, ask }: Exchanging): ModelFleet['exchange'] {
  const process_id = randomUUID();
  let number = 0;
  let read = '';
  return async (seen) => {
    number++;
    const [, now_ms, entries, breakers, benches] = await ask(process_id, [process_id, number, seen.length === 0 ? '' : JSON.stringify(seen), read, windowMs]) as
      readonly [string, number, readonly (readonly [id: string, seen: string])[], readonly string[], readonly string[]];
    const unread = entries.filter(([id]) => read === '' || isLater(id, read));
    read = unread.at(-1)?.[0] ?? read;
    return {
      now_ms, outcomes: summed(unread.flatMap(([, text]) => JSON.parse(text) as Outcomes[])),
      breakers: breakers.map((text) => JSON.parse(text) as OpenBreaker), benches: benches.map((text) => JSON.parse(text) as Bench),
    } satisfies FleetView;
  };
}

/** Of two ids of a stream, `ms-n`. */
function isLater(one: string, other: string): boolean {
  const [ms = 0, n = 0] = one.split('-').map(Number);
  const [otherMs = 0, otherN = 0] = other.split('-').map(Number);
  return ms > otherMs || (ms === otherMs && n > otherN);
}

/** One of each target. */
function summed(seen: readonly Outcomes[]): Outcomes[] {
  const sums = new Map<string, { ok: number; failed: Outcomes['failed'] }>();
  for (const { target, ok, failed } of seen) {
    const sum = sums.get(target) ?? { ok: 0, failed: {} };
    const types = Object.keys(failed) as (keyof Outcomes['failed'])[];
    sums.set(target, { ok: sum.ok + ok, failed: { ...sum.failed, ...Object.fromEntries(types.map((type) => [type, (sum.failed[type] ?? 0) + (failed[type] ?? 0)])) } });
  }
  return [...sums].map(([target, sum]) => ({ target, ...sum }));
}

/** As the script takes it: what has no limit is left out. */
function asked({ id, run_id, rates, tokens, lease_ms }: Reservation): Readonly<Record<string, string | number>> {
  const limited = Object.entries(rates).flatMap(([name, limit]) => (limit === null ? [] : [[name, atLeast1(name, limit)] as const]));
  return { id, run_id, tokens: whole('tokens', tokens), lease_ms: atLeast1('lease_ms', lease_ms), ...Object.fromEntries(limited) };
}

/** Scripts count in whole numbers. Throws `RangeError` for what is not a number from 0. */
function whole(name: string, value: number): number {
  if (!Number.isFinite(value) || value < 0) throw new RangeError(`${name}: expected a number from 0, got ${value}`);
  return Math.ceil(value);
}

function atLeast1(name: string, value: number): number {
  if (!(value >= 1)) throw new RangeError(`${name}: expected a number from 1, got ${value}`);
  return whole(name, value);
}
