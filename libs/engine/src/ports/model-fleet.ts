/**
 * The port of what the processes of a fleet know together about providers: outcomes that say something about their health, breakers
 * that are open, keys that are benched, and who may ask now. It remembers and counts; what follows is judged by those who ask.
 *
 * F1  Every answer is the store's, by the store's clock; times are epoch milliseconds, waits are milliseconds from now.
 * F2  A probe and a place in flight belong to whoever took them until they let go or their lease is over: no dead process keeps one.
 * F3  What is granted of a rate is never more than the rate, whoever asks, over any window of a minute.
 * F4  Bounded: outcomes for as long as a window is, at most `limits.breakers` open breakers and `limits.benches` benches; the oldest go.
 * F5  Throws when the store cannot be reached. Nobody waits for it for longer than a second; then everybody judges by what it knows itself.
 */
import type { ErrorType } from '@treadle/core';

/** What was seen of one target (`model:<name>` or `host:<host:port>`) since the last exchange. */
export interface Outcomes {
  readonly target: string;
  readonly ok: number;
  readonly failed: Readonly<Partial<Record<ErrorType, number>>>;
}

/** One per target and error type; `id` is `<target>:<error_type>`. */
export interface OpenBreaker {
  readonly id: string;
  readonly target: string;
  readonly error_type: ErrorType;
  readonly opened_at_ms: number;
  /** From then on one probe at a time may be sent. */
  readonly probe_at_ms: number;
  /** How often in a row it has opened; each time it stays open for longer. */
  readonly openings: number;
  /** By a person: no probe closes it, only a reset. */
  readonly forced: boolean;
}

/** A key (`credential:<fingerprint>`) or a model (`model:<name>`) that is not asked for a while. */
export interface Bench {
  readonly target: string;
  readonly reason: ErrorType;
  readonly until_ms: number;
}

export interface FleetView {
  readonly now_ms: number;
  /** What the others have seen since this process's last exchange, at most a window old. */
  readonly outcomes: readonly Outcomes[];
  readonly breakers: readonly OpenBreaker[];
  readonly benches: readonly Bench[];
}

/** Per minute and at once; null = any number. */
export interface Rates {
  readonly requests_per_minute: number | null;
  readonly tokens_per_minute: number | null;
  readonly in_flight: number | null;
}

export interface Reservation {
  /** Of the one who asks; asking again with it is answered as before. */
  readonly id: string;
  /** Whose rates: `credential:<fingerprint>`. */
  readonly target: string;
  readonly rates: Rates;
  /** Estimated, input and output. */
  readonly tokens: number;
  /** The run that asks: one that was told to wait has a place, and finds it when it comes again. */
  readonly run_id: string;
  /** How long the place in flight is believed in without a word. */
  readonly lease_ms: number;
}

export interface ModelFleet {
  /** Tells what was seen here, and answers what is known. Once a second or so from each process, and at once after a failure. */
  exchange(seen: readonly Outcomes[]): Promise<FleetView>;
  /** Opens for everybody. A breaker that is open already stays as it is, unless `forced` or its probe time has come (then `openings` rises). */
  open(breaker: { readonly target: string; readonly error_type: ErrorType; readonly for_ms: number; readonly forced: boolean }): Promise<void>;
  /**
   * Closes and forgets. By a probe (`probe_token`) only while it holds the probe and nobody has forced the breaker: one that took too long, or
   * that a person's word has overtaken, closes nothing. Without a token by a person: also takes back a forced opening. False where nothing was closed.
   */
  close(breaker_id: string, probe_token?: string): Promise<boolean>;
  /**
   * True for one token at a time. Asked again by its holder it renews the lease. False while the breaker is forced or its probe time has not
   * come; of a breaker that is not open here nothing is known, and it may be probed.
   */
  takeProbe(breaker_id: string, token: string, lease_ms: number): Promise<boolean>;
  /** Nothing happens where `token` does not hold it. */
  dropProbe(breaker_id: string, token: string): Promise<void>;
  /** Until the later of what stands there and now + `for_ms`. */
  bench(bench: { readonly target: string; readonly reason: ErrorType; readonly for_ms: number }): Promise<void>;
  /** False where it was not benched. */
  unbench(target: string): Promise<boolean>;
  /**
   * Takes requests, tokens and a place in flight at once, or nothing and a place in line: `wait_ms` is when the run's turn comes.
   * A request larger than a minute's tokens is granted when a whole minute's are there.
   */
  reserve(reservation: Reservation): Promise<{ readonly type: 'granted' } | { readonly type: 'wait'; readonly wait_ms: number }>;
  /** Believed in for another `lease_ms`. */
  renew(target: string, id: string, lease_ms: number): Promise<void>;
  /** The call is over: the place in flight is free, and the estimate becomes what was used. `used_tokens: 0` gives all of it back; the request stays counted. Once is enough; more do no harm. */
  settle(target: string, id: string, used_tokens: number): Promise<void>;
}
