/**
 * One streamed exchange over server-sent events, for the wires that speak them: the vendor's client builds the request, and from
 * the response on nothing is left to it, since such clients lose an error's body, end without a word when the stream does, and wait
 * for ever on a stalled one.
 *
 * Owns: the response's body, until the call is over.
 *
 * 1  A reply counts only once the collector has seen its terminal marker. What goes wrong behind that takes nothing from it.
 * 2  Behind the marker the stream may go on (counts of tokens come last), for a short grace only.
 * 3  However it ends, the body is read to its end or cancelled: the server must not go on generating.
 */
import type { Usage } from '@treadle/core';
import { classifyFailure } from '../failure/classify.ts';
import type { Stage } from '../failure/transport.ts';
import type { ProviderCall, ProviderOutcome } from '../provider.ts';
import { fillsWindow } from '../request/window.ts';
import { streamEvents, type StreamEvent } from './event-stream.ts';
import { refusing } from './refusal.ts';
import { EarlyEnd } from './stream-fault.ts';

/** Puts a wire's events together. States: open → finished (terminal marker) → closed (nothing more can come). */
export interface EventCollector {
  /** Whether the event was a sign of the reply itself. Throws `StreamedError` where it says that something went wrong. */
  readonly take: (event: StreamEvent) => boolean;
  readonly state: () => 'open' | 'finished' | 'closed';
  /** What came, judged. Only asked once it is no longer open. */
  readonly outcome: () => ProviderOutcome;
  /** What a reply that failed has cost so far; null where the wire has not said. */
  readonly usage: () => Usage | null;
}

export interface StreamedCall {
  /** Asks the vendor's client for the bare response, over the given fetch. */
  readonly open: (fetch: typeof globalThis.fetch) => Promise<Response>;
  readonly collector: EventCollector;
}

/** Milliseconds. */
const grace = { finished: 2000, closed: 100 } as const;

export async function streamedCall(call: ProviderCall, { open, collector }: StreamedCall): Promise<ProviderOutcome> {
  let stage: Stage = 'connecting';
  // The client wraps what its fetch throws, and some of its wrappers forget the cause.
  let thrown: unknown = null;
  const inner = refusing(call.fetch);
  const fetch: typeof globalThis.fetch = async (input, init) => {
    try {
      const response = await inner(input, { ...init, signal: call.signal });
      stage = 'streaming';
      return response;
    } catch (error) {
      thrown = error;
      throw error;
    }
  };
  let reader: ReadableStreamDefaultReader<Uint8Array> | null = null;
  try {
    reader = (await open(fetch)).body?.getReader() ?? null;
    if (reader !== null) await collect(streamEvents(reader), call, collector);
    if (collector.state() === 'open') throw new EarlyEnd();
    return collector.outcome();
  } catch (error) {
    if (collector.state() !== 'open') return collector.outcome();
    const failure = classifyFailure(thrown ?? error, { stage, nowMs: call.nowMs(), promptFillsWindow: () => fillsWindow(call.request) });
    return { type: 'failed', failure: { ...failure, usage: failure.usage ?? collector.usage() } };
  } finally {
    void reader?.cancel().catch(() => undefined);
  }
}

async function collect(events: AsyncGenerator<StreamEvent, void, undefined>, call: ProviderCall, collector: EventCollector): Promise<void> {
  for (;;) {
    const state = collector.state();
    const next = await (state === 'open' ? events.next() : within(grace[state], events.next()));
    if (next === null || next.done === true) return;
    if (state !== 'closed' && collector.take(next.value)) call.onProgress();
  }
}

/** Null when it takes longer. */
async function within<T>(ms: number, promise: Promise<T>): Promise<T | null> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<null>((resolve) => { timer = setTimeout(() => resolve(null), ms); });
  // Left alone when it is late: cancelling the body may make it fail.
  promise.catch(() => undefined);
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
