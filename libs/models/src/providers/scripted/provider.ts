/**
 * A scripted stand-in for a model, for demos and for trying Treadle without one. It is no model: it looks for files through the
 * filesystem tools it is offered, compares words, and quotes the passage that fits best. Nothing is random; everything it says
 * comes from tool results in the request.
 */
import { noUsage, type ModelReply, type ModelRequest, type ReplyCall } from '@treadle/core';
import { setImmediate } from 'node:timers/promises';
import type { Provider, ProviderCall, ProviderOutcome } from '../../provider.ts';
import { readConversation, type Conversation } from './conversation.ts';
import { documentTools, nextCalls, readFiles, type DocumentTools } from './documents.ts';
import { bestPassage } from './passages.ts';

export const scripted: Provider = { name: 'scripted', call: callScripted };

/** The answer's text comes in about so many increments. */
const increments = 4;

async function callScripted(call: ProviderCall): Promise<ProviderOutcome> {
  const { text, calls } = nextReply(call.request);
  for (const piece of pieces(text)) {
    // Lets others run between two increments, as a stream would.
    await setImmediate();
    if (call.signal.aborted) return aborted();
    call.onProgress();
    call.onText(piece);
  }
  return { type: 'replied', reply: replyOf(text, calls, call.request) };
}

interface Next { readonly text: string; readonly calls: readonly ReplyCall[] }

function nextReply(request: ModelRequest): Next {
  const conversation = readConversation(request);
  const tools = documentTools(request.tools);
  if (tools === null) return { text: plainAnswer(conversation), calls: [] };
  const calls = nextCalls(conversation.question, tools, conversation.answered);
  return calls.length > 0 ? { text: '', calls } : { text: answer(conversation, tools), calls: [] };
}

function plainAnswer(conversation: Conversation): string {
  return `I am the scripted stand-in of Treadle, not a language model, and I have no tools here to look anything up. You said: "${conversation.question.trim()}"${steered(conversation)}`;
}

function answer(conversation: Conversation, tools: DocumentTools): string {
  const read = readFiles(tools, conversation.answered);
  const passage = bestPassage(conversation.question, read);
  if (passage !== null) {
    const quoted = passage.text.split('\n').map((line) => `> ${line}`).join('\n');
    return `The passage that fits the question best (found by the scripted stand-in, by comparing words):\n\n${quoted}\n\nSource: ${passage.path}${steered(conversation)}`;
  }
  const failed = conversation.answered.find((each) => each.is_error);
  const why = read.length > 0
    ? `None of the ${read.length} files that I read holds a word of it: ${read.map((file) => file.path).join(', ')}.`
    : failed === undefined ? 'The tools named no text file that I could read.' : `A tool failed: ${failed.content.slice(0, 300).toWellFormed()}`;
  return `I am the scripted stand-in, and I found nothing about "${conversation.question.trim()}". ${why}${steered(conversation)}`;
}

function steered(conversation: Conversation): string {
  return conversation.steered.length === 0 ? '' : `\n\nYou added: ${conversation.steered.map((text) => `"${text.trim()}"`).join(', ')}.`;
}

/** Tokens are estimated as one per four bytes, as core does. */
function replyOf(text: string, calls: readonly ReplyCall[], request: ModelRequest): ModelReply {
  const finish = calls.length > 0 ? 'tool_calls' : 'stop';
  const usage = { ...noUsage, input_tokens: tokens(request.system) + tokens(JSON.stringify(request.messages)), output_tokens: tokens(text) + tokens(JSON.stringify(calls)) };
  return { text, thinking: '', provider_data: null, calls, finish, finish_raw: finish, usage };
}

function tokens(text: string): number {
  return Math.ceil(Buffer.byteLength(text) / 4);
}

/** Cut between words; put together they are the text. */
function pieces(text: string): readonly string[] {
  const words = text.match(/\s*\S+|\s+$/g) ?? [];
  const size = Math.max(1, Math.ceil(words.length / increments));
  return Array.from({ length: Math.ceil(words.length / size) }, (_, index) => words.slice(index * size, (index + 1) * size).join(''));
}

function aborted(): ProviderOutcome {
  return { type: 'failed', failure: { error_type: 'aborted', detail: 'the call was aborted', retry_after_s: null, usage: null } };
}
