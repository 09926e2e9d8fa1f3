/** One request and its answer, as the end of a call. */
import { errorText } from '../call/run-call.ts';
import { mediaTypeOf } from '../content/media.ts';
import { observed } from '../content/observed.ts';
import type { CallEnd, CallWindow } from '../kind.ts';
import { readBody } from './read-body.ts';

export interface Exchange {
  readonly fetch: typeof fetch;
  readonly window: CallWindow;
  readonly maxBytes: number;
}

export interface Asked { readonly url: URL; readonly method: string; readonly headers: Readonly<Record<string, string>>; readonly body?: string }

/** Never rejects. Any status is an answer; one that is not 2xx is an error of the tool. */
export async function exchanged({ fetch, window, maxBytes }: Exchange, { url, ...init }: Asked): Promise<CallEnd> {
  window.begin();
  try {
    const response = await fetch(url, { ...init, headers: { 'user-agent': 'treadle', 'accept-encoding': 'identity', ...init.headers }, signal: window.signal });
    return await answerOf(response, maxBytes);
  } catch (error) {
    return failedExchange(error, url);
  }
}

export async function answerOf(response: Response, maxBytes: number): Promise<CallEnd> {
  const { bytes, cut } = await readBody(response, maxBytes);
  const { content, attachments } = bytes.length === 0 ? { content: '', attachments: [] } : observed(bytes, mediaTypeOf(response.headers.get('content-type')));
  const lines = [
    ...(response.ok ? [] : [`HTTP ${response.status} ${response.statusText}`.trim()]),
    ...(response.status >= 300 && response.status < 400 ? [`It leads to ${response.headers.get('location') ?? 'nowhere'}, and is not followed.`] : []),
    content === '' && response.ok ? `(no content, HTTP ${response.status})` : content,
    ...(cut ? [`[The answer is longer than ${maxBytes} bytes; the rest was not read.]`] : []),
  ];
  return { type: 'answered', is_error: !response.ok, content: lines.filter((line) => line !== '').join('\n'), ...(attachments.length === 0 ? {} : { attachments }) };
}

/** Without the query: it may hold what the model was told in confidence, and says nothing of the fault. */
export function failedExchange(error: unknown, url: URL): CallEnd {
  const why = `The request to ${url.origin}${url.pathname} failed: ${errorText(error)}`;
  const sent = (error as { readonly sent?: boolean } | null)?.sent !== false;
  return sent ? { type: 'lost', why } : { type: 'not_started', why };
}
