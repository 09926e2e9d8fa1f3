/** Ollama's wire, server side: NDJSON lines of a chat reply, and the small endpoints beside it. */
import type { ScriptedCall, ScriptedMessage } from '../../replies.ts';
import { cutText, piecesOfText, tokensOf, type Asked, type ServedModel, type SideAnswer, type SideRequest } from '../dialect.ts';

const createdAt = '2026-01-01T00:00:00Z';

export function pieces(message: ScriptedMessage, asked: Asked): readonly string[] {
  return lines(message, asked).map((line) => `${JSON.stringify(line)}\n`);
}

export function whole(message: ScriptedMessage, asked: Asked): unknown {
  return { ...lastLine(message, asked), message: { role: 'assistant', content: message.text ?? '', ...thinkingOf(message), ...callsOf(message) } };
}

function lines(message: ScriptedMessage, asked: Asked): unknown[] {
  const line = (rest: object): unknown => ({ model: asked.body.model, created_at: createdAt, message: { role: 'assistant', content: '', ...rest }, done: false });
  const found: unknown[] = [];
  if (message.thinking !== undefined) found.push(line({ thinking: message.thinking }));
  for (const content of cutText(message.text ?? '', message.pieces ?? piecesOfText)) found.push(line({ content }));
  if ((message.calls ?? []).length > 0) found.push(line(callsOf(message)));
  found.push(lastLine(message, asked));
  return found;
}

function lastLine(message: ScriptedMessage, asked: Asked): object {
  const tokens = tokensOf(message, asked);
  return {
    model: asked.body.model, created_at: createdAt, message: { role: 'assistant', content: '' }, done: true, done_reason: message.done_reason ?? 'stop',
    total_duration: 1_000_000, load_duration: 0,
    ...(tokens === null ? {} : { prompt_eval_count: tokens.prompt, eval_count: tokens.output, eval_duration: 1_000_000 }),
  };
}

function thinkingOf(message: ScriptedMessage): object {
  return message.thinking === undefined ? {} : { thinking: message.thinking };
}

function callsOf(message: ScriptedMessage): object {
  const calls = message.calls ?? [];
  return calls.length === 0 ? {} : { tool_calls: calls.map(callOf) };
}

function callOf(call: ScriptedCall, index: number): unknown {
  return { ...(call.id === null ? {} : { id: call.id }), function: { index, name: call.name, arguments: call.args } };
}

export function beside({ what, body, models }: SideRequest): SideAnswer | null {
  switch (what) {
    case 'GET /api/version': return { status: 200, body: { version: '0.99.0-scripted' } };
    case 'GET /api/tags': return { status: 200, body: { models: models.map(tag) } };
    case 'POST /api/show': {
      const model = models.find((each) => each.name === body?.model);
      return model === undefined ? { status: 404, body: { error: `model '${body?.model ?? ''}' not found` } } : { status: 200, body: show(model) };
    }
    default: return null;
  }
}

function tag({ name, capabilities }: ServedModel): unknown {
  return { name, model: name, modified_at: createdAt, size: 1, digest: 'sha256:0', details: {}, capabilities };
}

function show(model: ServedModel): unknown {
  return {
    details: { family: 'scripted' }, capabilities: model.capabilities, parameters: '',
    model_info: { 'general.architecture': 'scripted', 'scripted.context_length': model.context_length },
  };
}
