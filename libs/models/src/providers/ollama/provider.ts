/**
 * Ollama's own wire (`/api/chat`, NDJSON) through its npm client, with what that client gets wrong put right around it: one
 * client per call (it aborts all of its streams at once), our signal in its fetch (it has none per call), errors caught before
 * it reduces them, lines checked before it drops them. The build for browsers is used because the one for Node reads files.
 */
import { Ollama, type ChatRequest } from 'ollama/browser';
import { refusing } from '../../http/refusal.ts';
import { noUserMessage, type Provider, type ProviderCall, type ProviderOutcome, type Served, type ServedQuestion } from '../../provider.ts';
import { classifyFailure } from '../../failure/classify.ts';
import type { Stage } from '../../failure/transport.ts';
import { listedModel } from '../../http/listed-models.ts';
import { EarlyEnd } from '../../http/stream-fault.ts';
import { asksSomething } from '../../request/words.ts';
import { fillsWindow } from '../../request/window.ts';
import { wholeLines } from './lines.ts';
import { render } from './render.ts';
import { createReplyCollector } from './reply.ts';

export const ollama: Provider = { name: 'ollama', call: callOllama, served: servedByOllama };

async function callOllama(call: ProviderCall): Promise<ProviderOutcome> {
  // Ollama answers such a request with `done_reason: "load"` and nothing else, and would for ever.
  if (!asksSomething(call.request.messages)) return noUserMessage;
  const wire = render(call.request);
  let stage: Stage = 'connecting';
  let stream: { abort(): void } | null = null;
  try {
    const { base_url, api_key } = call.connection;
    const client = new Ollama({
      host: base_url, fetch: guarded(call, () => { stage = 'streaming'; }),
      ...(api_key === undefined ? {} : { headers: { Authorization: `Bearer ${api_key}` } }),
    });
    const lines = await client.chat(wire as unknown as ChatRequest & { stream: true });
    stream = lines;
    const collector = createReplyCollector(call.request, call.onText);
    for await (const line of lines) {
      call.onProgress();
      collector.take(line);
    }
    const finished = collector.finish();
    if (finished === null) throw new EarlyEnd();
    return finished;
  } catch (error) {
    const fault = isEarlyEnd(error) ? new EarlyEnd() : error;
    return { type: 'failed', failure: classifyFailure(fault, { stage, nowMs: call.nowMs(), promptFillsWindow: () => fillsWindow(call.request) }) };
  } finally {
    // Leaving the loop does not close the connection: the server would go on generating.
    stream?.abort();
  }
}

/** What the npm client says when a stream ends without its last line. */
function isEarlyEnd(error: unknown): boolean {
  return error instanceof Error && error.message === 'Did not receive done or success response in stream.';
}

function guarded(call: ProviderCall, onHeaders: () => void): typeof fetch {
  const inner = refusing(call.fetch);
  return async (input, init = {}) => {
    const signals = [call.signal, ...(init.signal ? [init.signal] : [])];
    const response = await inner(input, { ...init, signal: AbortSignal.any(signals) });
    onHeaders();
    return response.body === null ? response : new Response(wholeLines(response.body), { status: response.status, headers: response.headers });
  };
}

/** Ollama lists a model with its tag, and takes `latest` for one that is named without. */
function servedByOllama(question: ServedQuestion): Promise<Served> {
  const { api_key } = question.connection;
  return listedModel({
    path: '/api/tags', headers: api_key === undefined ? {} : { authorization: `Bearer ${api_key}` }, list: 'models', name: 'name',
    means: (listed, asked) => listed === asked || listed === `${asked}:latest`,
  }, question);
}
