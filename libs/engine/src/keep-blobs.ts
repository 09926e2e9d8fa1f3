/**
 * What a tool gave, within the run's limit: the whole of a text that is cut, and whatever is no text, goes to the run's folder of the
 * archive. An archive that is away costs the run these, not its time: nothing is referred to that is not there.
 */
import { capText, type Attachment, type SettledCall } from '@treadle/core';
import type { Archive } from './ports/archive.ts';
import type { ToolAttachment, ToolRunResult } from './ports/tool-runner.ts';

/** How long a result waits for what belongs to it to be stored, ms. */
const blobMs = 3000;
/** Of one result; more are not kept. */
const mostAttachments = 10;

export interface ObservationRules {
  readonly maxBytes: number;
  /** Whether the model is told the blob of what was cut. */
  readonly named: boolean;
}

type Observation = Pick<SettledCall, 'content' | 'truncated_bytes' | 'blob' | 'attachments'>;

export class BlobKeeper {
  readonly #archive: Pick<Archive, 'putBlob'>;
  readonly #run_id: string;

  constructor(archive: Pick<Archive, 'putBlob'>, run_id: string) {
    this.#archive = archive;
    this.#run_id = run_id;
  }

  async observation({ content, attachments = [] }: Pick<ToolRunResult, 'content' | 'attachments'>, rules: ObservationRules): Promise<Observation> {
    const kept = await Promise.all(attachments.slice(0, mostAttachments).map((each) => this.#attachment(each)));
    const stored = kept.filter((each) => each !== null);
    const lost = attachments.length - stored.length;
    const whole = lost === 0 ? content : `${content}\n[${lost} of what belongs to this result could not be kept, and ${lost === 1 ? 'is' : 'are'} not there.]`;
    return { ...(await this.#capped(whole, rules)), ...(stored.length === 0 ? {} : { attachments: stored }) };
  }

  async #attachment({ media_type, bytes }: ToolAttachment): Promise<Attachment | null> {
    const blob = await this.#put(bytes);
    return blob === null ? null : { blob, media_type, bytes: bytes.length };
  }

  async #capped(text: string, { maxBytes, named }: ObservationRules): Promise<Observation> {
    const capped = capText(text, maxBytes);
    if (capped.truncated_bytes === 0) return { content: capped.text };
    const blob = await this.#put(new TextEncoder().encode(text));
    if (blob === null) return { content: capped.text, truncated_bytes: capped.truncated_bytes };
    const note = `\n[The whole is kept as blob ${blob}; read_blob reads it.]`;
    if (!named || maxBytes < 2 * note.length) return { content: capped.text, truncated_bytes: capped.truncated_bytes, blob };
    const shorter = capText(text, maxBytes - note.length);
    return { content: shorter.text + note, truncated_bytes: shorter.truncated_bytes, blob };
  }

  async #put(bytes: Uint8Array): Promise<string | null> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<null>((resolve) => { timer = setTimeout(resolve, blobMs, null); });
    const put = this.#archive.putBlob(this.#run_id, bytes).catch(() => null);
    return Promise.race([put, late]).finally(() => { clearTimeout(timer); });
  }
}
