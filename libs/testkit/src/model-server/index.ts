/** The scriptable model server of the tests, and the strict validator of what it is sent. */
export {
  cut, raw, refusal, reply, stall, status, text, tool, type CutManner, type CutPoint, type Delivery, type ScriptedCall, type ScriptedMessage,
  type ScriptedReply, type WholeReply,
} from './replies.ts';
export { startModelServer, type ModelServer, type ModelServerOptions } from './server.ts';
export type { ModelScript, RecordedRequest, RequestEnd } from './script.ts';
export { strictValidator, type ChatBody, type ChatMessage, type DialectName, type ServedModel } from './dialects/index.ts';
export { signatureOf } from './dialects/anthropic/index.ts';
export { sse } from './dialects/sse.ts';
export { toolTurns, type ToolTurns } from './tool-turns.ts';
