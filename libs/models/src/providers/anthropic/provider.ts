/**
 * Anthropic's Messages API, and servers that imitate it, through the vendor's npm client. One client per call, told everything it would
 * else take from the environment or from files of the user.
 */
import Anthropic from '@anthropic-ai/sdk';
import { withHeaders } from '../../http/headers.ts';
import { listedModel } from '../../http/listed-models.ts';
import { streamedCall } from '../../http/streamed-call.ts';
import { noUserMessage, type Provider, type ProviderCall, type ProviderOutcome, type Served, type ServedQuestion } from '../../provider.ts';
import { asksSomething } from '../../request/words.ts';
import { render } from './render.ts';
import { createReplyCollector } from './reply.ts';

export const anthropic: Provider = { name: 'anthropic', call: callAnthropic, served: servedByAnthropic };

async function callAnthropic(call: ProviderCall): Promise<ProviderOutcome> {
  const { request, connection } = call;
  if (!asksSomething(request.messages)) return noUserMessage;
  const wire = render(request);
  return streamedCall(call, {
    collector: createReplyCollector(request, call.onText),
    open: (fetch) => client(connection.base_url, withHeaders(fetch, connection.api_key === undefined ? {} : { 'x-api-key': connection.api_key }))
      .messages.create(wire as unknown as Anthropic.MessageCreateParamsStreaming).asResponse(),
  });
}

/** A key must be given, or it searches the environment and the user's files for one; the real one stands in the headers. */
function client(baseURL: string, fetch: typeof globalThis.fetch): Anthropic {
  return new Anthropic({ baseURL, fetch, apiKey: 'in the headers', webhookKey: null, maxRetries: 0, timeout: 2 ** 31 - 1, logLevel: 'off', openTelemetry: false });
}

/** Names without a date stand for the newest that has one. */
function servedByAnthropic(question: ServedQuestion): Promise<Served> {
  const { api_key } = question.connection;
  return listedModel({
    path: '/v1/models?limit=1000', headers: { 'anthropic-version': version, ...(api_key === undefined ? {} : { 'x-api-key': api_key }) }, list: 'data', name: 'id',
    means: (listed, asked) => listed === asked || listed.replace(/-\d{8}$/, '') === asked.replace(/-latest$/, ''),
  }, question);
}

/** Of the API; what the client says, too. */
const version = '2026-10-21';
