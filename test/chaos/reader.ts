/**
 * A reader of one run's event stream that breaks its connection again and again, and resumes by `Last-Event-ID`. Most say which epoch
 * their last event had, as our client does; the others, as browsers, do not, and stay for longer when their log was set back.
 *
 * Owns: one connection at a time. States: reading → ended (`run_end` seen) or stopped.
 */
import { pick, type Random } from './random.ts';

export interface BreakingReader {
  readonly run_id: string;
  /** The `data` of every event, in the order they were shown. */
  readonly seen: readonly string[];
  /** Connections so far. */
  connections(): number;
  /** How often it was told that what it had seen is void; that is no longer in `seen`. */
  resets(): number;
  readonly ended: Promise<void>;
  /** Reads on to the end once more, from what it has seen last: that may be lost meanwhile, also the end. */
  comeBack(): Promise<void>;
  stop(): void;
}

/** Breaks after 1 to 7 events. What a server that is away answers is tried again shortly. */
export function startReader(baseUrl: string, run_id: string, random: Random): BreakingReader {
  const seen: string[] = [];
  let connections = 0;
  let resets = 0;
  let stopped = false;
  let lastId = '';
  let lastEpoch: number | null = null;
  const browser = random() < 0.3;

  async function once(): Promise<boolean> {
    const leave = new AbortController();
    let budget = 1 + pick(random, 7);
    connections += 1;
    const response = await fetch(`${baseUrl}/v1/runs/${run_id}/events`, { signal: leave.signal, headers: { accept: 'text/event-stream', ...(lastId === '' ? {} : { 'last-event-id': lastId }), ...(lastEpoch === null || browser ? {} : { 'treadle-last-epoch': String(lastEpoch) }) } });
    // Nothing follows.
    if (response.status === 204) return true;
    if (!response.ok || response.body === null) throw new Error(`HTTP ${response.status}`);
    let buffered = '';
    for await (const chunk of response.body.pipeThrough(new TextDecoderStream())) {
      buffered += chunk;
      for (let end = buffered.indexOf('\n\n'); end >= 0; end = buffered.indexOf('\n\n')) {
        const event = parse(buffered.slice(0, end));
        buffered = buffered.slice(end + 2);
        if (event === null) continue;
        if (event.type === 'reset') {
          resets += 1;
          lastId = event.id;
          lastEpoch = null;
          if (browser) budget += 100;
          seen.splice((JSON.parse(event.data) as { last_seq: number }).last_seq);
          continue;
        }
        seen.push(event.data);
        lastId = event.id;
        lastEpoch = (JSON.parse(event.data) as { epoch: number }).epoch;
        if (event.type === 'run_end') { leave.abort(); return true; }
        if (--budget === 0 || stopped) { leave.abort(); return stopped; }
      }
    }
    return stopped;
  }

  const toTheEnd = async (): Promise<void> => {
    while (!stopped) {
      try {
        if (await once()) return;
      } catch {
        await new Promise((resolve) => { setTimeout(resolve, 100); });
      }
    }
  };
  const ended = toTheEnd();
  return { run_id, seen, connections: () => connections, resets: () => resets, ended, comeBack: toTheEnd, stop: () => { stopped = true; } };
}

function parse(block: string): { readonly id: string; readonly type: string; readonly data: string } | null {
  const field = (name: string): string | undefined => block.split('\n').find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2);
  const data = field('data');
  return data === undefined ? null : { id: field('id') ?? '', type: field('event') ?? '', data };
}
