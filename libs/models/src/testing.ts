/** Builders for the tests of this lib. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Message, ModelRequest, ToolDefinition } from '@treadle/core';
import type { ModelOutcome } from '@treadle/engine';
import { createModelGateway, type ClosableModelGateway, type ModelGatewayOptions } from './gateway.ts';
import type { ModelConnection } from './provider.ts';

export function toolNamed(name: string, input_schema: Readonly<Record<string, unknown>> = { type: 'object', properties: {} }): ToolDefinition {
  return {
    name, wire_name: name.replaceAll('/', '__'), description: `The tool ${name}.`, input_schema,
    effect: 'read', parallel: 'parallel', timeout_ms: 1000, hash: 'sha256:0',
  };
}

export function requestOf(over: Partial<ModelRequest> = {}, provider = 'ollama'): ModelRequest {
  return {
    model: { name: 'small', provider, model: 'scripted:latest', context_window: 8192, max_output_tokens: 1024, supports_tools: true, supports_images: true },
    system: 'You are a test.', messages: [{ role: 'user', content: 'Hello?' }], tools: [], ...over,
  };
}

export function connectionTo(base_url: string, over: Partial<ModelConnection> = {}): ModelConnection {
  return { base_url, first_token_timeout_ms: 10_000, idle_timeout_ms: 10_000, total_timeout_ms: 20_000, ...over };
}

/** A gateway whose model `small` is served at `base_url`. */
export function gatewayTo(base_url: string, over: Partial<ModelConnection> = {}, options: Partial<ModelGatewayOptions> = {}): ClosableModelGateway {
  return createModelGateway({ connections: { small: connectionTo(base_url, over) }, ...options });
}

export interface Called { readonly outcome: ModelOutcome; readonly increments: readonly string[] }

export async function callOnce(gateway: ClosableModelGateway, request = requestOf(), signal = new AbortController().signal): Promise<Called> {
  const increments: string[] = [];
  const outcome = await gateway.call({ request, signal, onText: (increment) => increments.push(increment) });
  return { outcome, increments };
}

/** The reason as the core will name it: two kinds of replies are failures there. */
export function reasonOf(outcome: ModelOutcome): string {
  if (outcome.type === 'failed') return outcome.failure.error_type;
  const { finish, calls, text } = outcome.reply;
  if (finish === 'length') return 'output_truncated';
  return calls.length === 0 && text.trim() === '' ? 'empty_response' : 'replied';
}

/** The wires there are, and how each is reached at a server's address. */
export const wires = ['ollama', 'openai', 'anthropic'] as const;
export type Wire = (typeof wires)[number];

export function baseUrlOf(wire: Wire, server_url: string): string {
  return wire === 'openai' ? `${server_url}/v1` : server_url;
}

/** The beginning of a reply: its text so far, and no end. */
export function textSoFar(wire: Wire, content: string): string {
  switch (wire) {
    case 'ollama': return `${JSON.stringify({ message: { role: 'assistant', content }, done: false })}\n`;
    case 'openai': return frame({ choices: [{ index: 0, delta: { role: 'assistant', content }, finish_reason: null }] });
    case 'anthropic': return [
      named({ type: 'message_start', message: { usage: { input_tokens: 12, output_tokens: 1 } } }), named({ type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } }), moreText(wire, content),
    ].join('');
  }
}

/** What may follow it. */
export function moreText(wire: Wire, text: string): string {
  return wire === 'anthropic' ? named({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } }) : textSoFar(wire, text);
}

/** Its end. */
export function endOfText(wire: Wire): string {
  switch (wire) {
    case 'ollama': return `${JSON.stringify({ message: { role: 'assistant', content: '' }, done: true, done_reason: 'stop' })}\n`;
    case 'openai': return `${frame({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] })}data: [DONE]\n\n`;
    case 'anthropic': return [
      named({ type: 'content_block_stop', index: 0 }), named({ type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 9 } }), named({ type: 'message_stop' }),
    ].join('');
  }
}

/** One server-sent event, without and with its name. */
export function frame(data: unknown): string {
  return `data: ${JSON.stringify(data)}\n\n`;
}

export function named(data: { readonly type: string; readonly [field: string]: unknown }): string {
  return `event: ${data.type}\n${frame(data)}`;
}

export interface Answer { readonly status: number; readonly headers: Readonly<Record<string, string>>; readonly body: string }

/** A server that answers everything with what it was last given: for refusals, where the request does not matter. */
export async function startAnswering(): Promise<{ readonly url: string; readonly answerWith: (answer: Answer) => void; readonly close: () => Promise<void> }> {
  let answer: Answer = { status: 500, headers: {}, body: 'nothing to answer with' };
  const server = createServer((request, response) => {
    request.resume().on('end', () => response.writeHead(answer.status, answer.headers).end(answer.body));
  });
  await new Promise<void>((resolve) => { server.listen(0, '127.0.0.1', resolve); });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    answerWith: (next) => { answer = next; },
    close: () => new Promise<void>((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    }),
  };
}

/** One pixel. */
const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg==';

/** A conversation with one of everything: ids and names that no wire takes, an error, what the host says, an image. */
export const talk: readonly Message[] = [
  { role: 'user', content: 'Add 1 and 2' },
  {
    role: 'assistant', text: '', thinking: 'hm, let me think', model: 'small', provider_data: null,
    calls: [{ tool_use_id: 'call_t1_0', tool_name: 'math/add', tool_input: { x: 1 } }, { tool_use_id: 'functions.invented:1', tool_name: 'invented.tool/ü', tool_input: {} }],
  },
  { role: 'tool', tool_use_id: 'call_t1_0', tool_name: 'math/add', content: '3', is_error: false },
  { role: 'tool', tool_use_id: 'functions.invented:1', tool_name: 'invented.tool/ü', content: 'no such tool', is_error: true },
  { role: 'host', note: 'steer', content: 'in French' },
  { role: 'host', note: 'reask', content: 'Answer, please.' },
  { role: 'assistant', text: 'Trois. \n', thinking: '', model: 'small', calls: [] },
  { role: 'user', content: [{ type: 'text', text: 'see' }, { type: 'image', media_type: 'image/jpeg', data: png }, { type: 'text', text: 'there' }] },
];
