/** The scriptable model server of the tests, and the strict validator of what it is sent. */
export {
  cut, raw, reply, stall, status, text, tool, type CutManner, type CutPoint, type Delivery, type ScriptedCall, type ScriptedMessage, type ScriptedReply,
  type WholeReply,
} from './replies.ts';
export {
  startModelServer, type ChatBody, type ChatMessage, type ModelScript, type ModelServer, type ModelServerOptions, type RecordedRequest, type RequestEnd,
} from './server.ts';
export type { ServedModel } from './ollama-wire.ts';
export { strictValidator } from './strict-validator.ts';
export { toolTurns, type ToolTurns } from './tool-turns.ts';
