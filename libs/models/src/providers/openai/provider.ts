/**
 * Servers that speak OpenAI's `/chat/completions` (vLLM, llama.cpp, LM Studio, OpenRouter, Groq, DeepSeek, Azure's `/openai/v1`, …)
 * through the vendor's npm client. One client per call, told everything it would else take from the environment.
 */
import OpenAI from 'openai';
import { withHeaders } from '../../http/headers.ts';
import { listedModel } from '../../http/listed-models.ts';
import { streamedCall } from '../../http/streamed-call.ts';
import { noUserMessage, type Provider, type ProviderCall, type ProviderOutcome, type Served, type ServedQuestion } from '../../provider.ts';
import { asksSomething } from '../../request/words.ts';
import { render } from './render.ts';
import { createReplyCollector } from './reply.ts';

export const openai: Provider = { name: 'openai', call: callOpenai, served: servedByOpenai };

async function callOpenai(call: ProviderCall): Promise<ProviderOutcome> {
  const { request, connection } = call;
  if (!asksSomething(request.messages)) return noUserMessage;
  const wire = render(request, isVendorsOwn(connection.base_url));
  return streamedCall(call, {
    collector: createReplyCollector(request, call.onText),
    open: (fetch) => client(connection.base_url, withHeaders(fetch, connection.api_key === undefined ? {} : { authorization: `Bearer ${connection.api_key}` }))
      .chat.completions.create(wire as unknown as OpenAI.ChatCompletionCreateParamsStreaming).asResponse(),
  });
}

/** What is null or named here it does not look for; the key, which it insists on, stands in the headers. */
function client(baseURL: string, fetch: typeof globalThis.fetch): OpenAI {
  return new OpenAI({
    baseURL, fetch, apiKey: 'in the headers', adminAPIKey: null, organization: null, project: null, webhookSecret: null,
    maxRetries: 0, timeout: 2 ** 31 - 1, logLevel: 'off',
  });
}

function isVendorsOwn(base_url: string): boolean {
  return /^https:\/\/([\w-]+\.)*(openai\.com|openai\.azure\.com)(:\d+)?(\/|$)/.test(base_url);
}

function servedByOpenai(question: ServedQuestion): Promise<Served> {
  const { api_key } = question.connection;
  return listedModel({ path: '/models', headers: api_key === undefined ? {} : { authorization: `Bearer ${api_key}` }, list: 'data', name: 'id' }, question);
}
