/**
 * A reader of one run's event stream that breaks its connection again and again, and resumes by `Last-Event-ID`. Most say which epoch
 * their last event had, as our client does; the others, as browsers, do not, and stay for longer when their log was set back.
 *
 * Owns: one connection at a time. States: reading → ended (`run_end` seen) or stopped.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { pick, scaled, type Random } from './random.ts';

export interface BreakingReader {
  readonly run_id: string;
  /** The `data` of every event, in the order they were shown. */
  readonly seen: readonly string[];
  /** Connections so far. */
  connections(): number;
  /** How often it was told that what it had seen is void; that is no longer in `seen`. */
  resets(): number;
  /** Where it stands and what it was answered last, for errors. */
  standing(): string;
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
  let answer = 'asked for the first time';
  let lastId = '';
  let lastEpoch: number | null = null;
  const browser = random() < 0.3;

  async function once(): Promise<boolean> {
    const leave = new AbortController();
    let budget = 1 + pick(random, 7);
    connections += 1;
    const response = await fetch(`${baseUrl}/v1/runs/${run_id}/events`, { signal: leave.signal, headers: { accept: 'text/event-stream', ...(lastId === '' ? {} : { 'last-event-id': lastId }), ...(lastEpoch === null || browser ? {} : { 'treadle-last-epoch': String(lastEpoch) }) } });
    answer = `HTTP ${response.status} at ${new Date().toISOString()}`;
    // Nothing follows.
    if (response.status === 204) return true;
    if (!response.ok || response.body === null) throw new Error(`HTTP ${response.status} ${await response.text()}`);
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
      } catch (error) {
        answer = String(error).slice(0, 500);
        await new Promise((resolve) => { setTimeout(resolve, 100); });
      }
    }
  };
  const ended = toTheEnd();
  return { run_id, seen, connections: () => connections, resets: () => resets, standing: () => `${run_id}: ${connections} connections, ${seen.length} events seen, the last with the id ${lastId}; ${answer}`, ended, comeBack: toTheEnd, stop: () => { stopped = true; } };
}

/** Of runs that have ended: resolves when each reader has read. Throws, after a minute (large: ten), what says where those stand that have not. */
export async function allRead(readers: readonly BreakingReader[], reads: (reader: BreakingReader) => Promise<void>): Promise<void> {
  const timeoutMs = scaled({ small: 60_000, large: 600_000 });
  const reading = new Set(readers);
  const late = new AbortController();
  const read = Promise.all(readers.map(async (reader) => {
    await reads(reader);
    reading.delete(reader);
  }));
  await Promise.race([read, sleep(timeoutMs, undefined, { signal: late.signal }).then(() => {
    throw new Error(`${reading.size} of ${readers.length} readers have not come to the end within ${timeoutMs} ms:\n${[...reading].slice(0, 10).map((reader) => reader.standing()).join('\n')}`);
  })]).finally(() => { late.abort(); });
}

function parse(block: string): { readonly id: string; readonly type: string; readonly data: string } | null {
  const field = (name: string): string | undefined => block.split('\n').find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2);
  const data = field('data');
  return data === undefined ? null : { id: field('id') ?? '', type: field('event') ?? '', data };
}
