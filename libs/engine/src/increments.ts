/**
 * Text of replies as it comes: gathered for all runs of a process and appended by one call a tick.
 *
 * Owns: per open reply the text not yet appended, and the tick. Text is shown in order and never twice; what is still
 * gathered when a reply closes is left to the reply's own commit.
 * An append whose answer is `fenced`, or that throws, ends the delivery (E2).
 */
import { encodeEvent, type RunEvent, type RunState } from '@treadle/core';
import type { RunHold } from './hold.ts';
import type { Randomness } from './ports/clock.ts';
import type { Append, TurnStore } from './ports/run-store.ts';

export interface IncrementOptions {
  /** How long text is gathered before its first append, ms. */
  readonly firstMs: number;
  /** The longest that later text waits, ms. */
  readonly maxMs: number;
}

interface OpenReply { readonly hold: RunHold; text: string; shown: string }

export interface ReplyText {
  add(text: string): void;
  /** Waits for an append under way; answers the text that is in the log. */
  close(): Promise<string>;
}

/** For `strict` mode: replies are shown whole. */
export const noIncrements: Pick<IncrementWriter, 'open'> = { open: () => ({ add: () => undefined, close: () => Promise.resolve('') }) };

export class IncrementWriter {
  readonly #open = new Set<OpenReply>();
  readonly #store: TurnStore;
  readonly #random: Randomness;
  readonly #options: IncrementOptions;
  #timer: NodeJS.Timeout | null = null;
  #flushing: Promise<void> | null = null;
  #waitMs: number;

  constructor(deps: { readonly store: TurnStore; readonly random: Randomness }, options: IncrementOptions = { firstMs: 50, maxMs: 250 }) {
    this.#store = deps.store;
    this.#random = deps.random;
    this.#options = options;
    this.#waitMs = options.firstMs;
  }

  open(hold: RunHold): ReplyText {
    const reply: OpenReply = { hold, text: '', shown: '' };
    this.#open.add(reply);
    return {
      add: (text) => {
        reply.text += text;
        this.#arm();
      },
      close: async () => {
        this.#open.delete(reply);
        while (this.#flushing !== null) await this.#flushing;
        if (this.#open.size === 0) this.#disarm();
        return reply.shown;
      },
    };
  }

  /** Appends what has gathered, now. */
  async flush(): Promise<void> {
    // Several may wait here: only one may begin the next append, since the sequence numbers of two would be the same.
    while (this.#flushing !== null) await this.#flushing;
    const own = this.#append().finally(() => { if (this.#flushing === own) this.#flushing = null; });
    this.#flushing = own;
    await own;
  }

  #arm(): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = null;
      this.#waitMs = Math.min(this.#waitMs * 1.5, this.#options.maxMs);
      void this.flush().finally(() => {
        if ([...this.#open].some((reply) => reply.text !== '')) this.#arm();
      });
    }, this.#waitMs);
  }

  #disarm(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    this.#waitMs = this.#options.firstMs;
  }

  async #append(): Promise<void> {
    const batch = [...this.#open].flatMap((reply) => this.#prepare(reply));
    if (batch.length === 0) return;
    try {
      const replies = await this.#store.appendMany(batch.map((item) => item.append));
      batch.forEach((item, index) => {
        const answer = replies[index];
        if (answer?.type !== 'committed') { item.reply.hold.abort('fenced'); return; }
        item.reply.hold.appended(item.events, item.after);
        item.reply.shown += item.text;
        item.reply.hold.receive(answer.inbox, item.append.inbox_seen);
      });
    } catch {
      // Nobody knows whether it happened, and the run is not to blame.
      for (const item of batch) item.reply.hold.abort('unclear');
    }
  }

  /** Takes the gathered text but for a half character at its end. */
  #prepare(reply: OpenReply): { reply: OpenReply; append: Append; events: RunEvent[]; after: RunState; text: string }[] {
    const { hold } = reply;
    const cut = /[\ud800-\udbff]$/.test(reply.text) ? reply.text.length - 1 : reply.text.length;
    const text = reply.text.slice(0, cut);
    if (text === '' || hold.left !== null) return [];
    reply.text = reply.text.slice(cut);
    const { events, after } = hold.stamped([{ type: 'assistant_text', content: text.toWellFormed(), is_final: false, attempt: hold.state.attempt }]);
    const append: Append = {
      claim: hold.claim, expected_seq: hold.state.last_seq, commit_id: this.#random.uuid(), events: events.map(encodeEvent),
      last_ts: after.last_ts, inbox_seen: hold.inboxSeen,
    };
    return [{ reply, append, events, after, text }];
  }
}
