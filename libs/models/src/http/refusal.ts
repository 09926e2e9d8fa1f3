/**
 * A response that is not a success, kept whole for the classifier: the vendors' clients lose the headers, or the body, or both.
 */

/** Bytes of an error body that are kept. */
const keptBytes = 64 * 1024;

/** Thrown in place of any response outside 200 to 299. */
export class HttpRefusal extends Error {
  readonly status: number;
  readonly headers: Headers;
  /** The first 64 KiB. */
  readonly body: string;

  constructor(response: Pick<Response, 'status' | 'headers'>, body: string) {
    super(`HTTP ${response.status}`);
    this.name = 'HttpRefusal';
    this.status = response.status;
    this.headers = response.headers;
    this.body = body;
  }
}

/** `fetch` that throws `HttpRefusal` where a response is not ok, its connection let go. */
export function refusing(inner: typeof fetch): typeof fetch {
  return async (input, init) => {
    const response = await inner(input, init);
    if (response.ok) return response;
    throw new HttpRefusal(response, await beginningOf(response.body));
  };
}

/** What came of a body that broke off is still worth reading. */
async function beginningOf(body: ReadableStream<Uint8Array> | null): Promise<string> {
  if (body === null) return '';
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let left = keptBytes;
  let text = '';
  try {
    while (left > 0) {
      const { done, value } = await reader.read();
      if (done) return text + decoder.decode();
      text += decoder.decode(value.subarray(0, left), { stream: true });
      left -= value.length;
    }
    await reader.cancel();
  } catch {
    return text;
  }
  return text;
}
