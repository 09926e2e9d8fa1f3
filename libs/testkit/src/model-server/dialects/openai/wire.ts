/** The wire of OpenAI's chat completions, server side, as it and the servers compatible with it send a reply. */
import type { ScriptedCall, ScriptedMessage } from '../../replies.ts';
import { cutText, piecesOfText, tokensOf, type Asked, type SideAnswer, type SideRequest } from '../dialect.ts';
import { sse } from '../sse.ts';

const created = 1_767_225_600;

export function pieces(message: ScriptedMessage, asked: Asked): readonly string[] {
  const counted = wantsUsage(asked);
  const chunk = (choices: readonly unknown[], usage: unknown = null): string => sse({
    id: `chatcmpl-${asked.index}`, object: 'chat.completion.chunk', created, model: asked.body.model, choices, ...(counted ? { usage } : {}),
  });
  const delta = (part: object, finish: string | null = null): string => chunk([{ index: 0, delta: part, logprobs: null, finish_reason: finish }]);
  const count = message.pieces ?? piecesOfText;
  const usage = usageOf(message, asked);
  return [
    delta({ role: 'assistant', content: '' }),
    ...(message.thinking === undefined ? [] : cutText(message.thinking, count).map((reasoning_content) => delta({ reasoning_content }))),
    ...cutText(message.text ?? '', count).map((content) => delta({ content })),
    ...(message.calls ?? []).flatMap((call, index) => callDeltas(call, index, count).map((part) => delta({ tool_calls: [part] }))),
    delta({}, finishReason(message)),
    ...(counted && usage !== null ? [chunk([], usage)] : []),
    sse('[DONE]'),
  ];
}

export function whole(message: ScriptedMessage, asked: Asked): unknown {
  const calls = message.calls ?? [];
  const said = {
    role: 'assistant', content: message.text ?? null, refusal: null,
    ...(message.thinking === undefined ? {} : { reasoning_content: message.thinking }),
    ...(calls.length === 0 ? {} : {
      tool_calls: calls.map((call) => ({ ...idOf(call), type: 'function', function: { name: call.name, ...(call.args === undefined ? {} : { arguments: argumentsOf(call) }) } })),
    }),
  };
  const usage = usageOf(message, asked);
  return {
    id: `chatcmpl-${asked.index}`, object: 'chat.completion', created, model: asked.body.model,
    choices: [{ index: 0, message: said, logprobs: null, finish_reason: finishReason(message) }], ...(usage === null ? {} : { usage }),
  };
}

/** The name comes first, with the id; then the arguments in pieces. Arguments that are no text come whole, as some servers send them. */
function callDeltas(call: ScriptedCall, index: number, count: number): unknown[] {
  const head = (own: object): unknown => ({ index, ...idOf(call), type: 'function', function: { name: call.name, ...own } });
  if (call.args === undefined) return [head({})];
  const given = argumentsOf(call);
  if (given === null) return [head({ arguments: null })];
  return [head({ arguments: '' }), ...cutText(given, count).map((piece) => ({ index, function: { arguments: piece } }))];
}

function idOf(call: ScriptedCall): object {
  return call.id === null ? {} : { id: call.id };
}

/** A string is the text of the arguments as the model wrote it, whether it is JSON or not. */
function argumentsOf({ args }: ScriptedCall): string | null {
  return args === null || typeof args === 'string' ? args : JSON.stringify(args);
}

function finishReason(message: ScriptedMessage): string {
  return message.done_reason ?? ((message.calls ?? []).length > 0 ? 'tool_calls' : 'stop');
}

function wantsUsage({ body }: Asked): boolean {
  const options = body['stream_options'];
  return options !== null && typeof options === 'object' && (options as { include_usage?: unknown }).include_usage === true;
}

function usageOf(message: ScriptedMessage, asked: Asked): unknown {
  const tokens = tokensOf(message, asked);
  return tokens === null ? null : {
    prompt_tokens: tokens.prompt, completion_tokens: tokens.output, total_tokens: tokens.prompt + tokens.output,
    prompt_tokens_details: { cached_tokens: tokens.cached }, completion_tokens_details: { reasoning_tokens: 0 },
  };
}

const types: Readonly<Record<number, readonly [string, string | null]>> = {
  401: ['invalid_request_error', 'invalid_api_key'], 403: ['invalid_request_error', null], 404: ['invalid_request_error', 'model_not_found'],
  429: ['requests', 'rate_limit_exceeded'], 500: ['server_error', null], 503: ['server_error', 'slow_down'],
};

export function errorBody(status: number, message: string): unknown {
  const [type, code] = types[status] ?? [status >= 500 ? 'server_error' : 'invalid_request_error', null];
  return { error: { message, type, param: null, code } };
}

export function beside({ what, headers, models }: SideRequest): SideAnswer | null {
  if (what !== 'GET /v1/models' || headers['anthropic-version'] !== undefined) return null;
  return { status: 200, body: { object: 'list', data: models.map(({ name, context_length }) => ({ id: name, object: 'model', created, owned_by: 'scripted', max_model_len: context_length })) } };
}
