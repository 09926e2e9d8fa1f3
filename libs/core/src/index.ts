export { assertNever, InvariantBroken } from './assert-never.ts';
export type { AgentSpec, ApprovalRule, BuiltinTool, CanaryArm, CanaryPin, ChainSpec, EffectClass, HookDecision, HookSpec, ModelSpec, OnUnknown, ParallelClass, SubagentSpec, ToolDefinition, ValidatorSpec } from './agent-spec.ts';
export { builtinTools } from './agent-spec.ts';
export { awaitedWords, isWord, wordKeyOf, type WordCommand, type WordKey } from './awaited-words.ts';
export { canonicalJson } from './canonical-json.ts';
export { own } from './own.ts';
export { schemaPattern } from './schema-pattern.ts';
export { awaitsAnswer, childOf, endOf, isSpawn, tellings, type Telling } from './children.ts';
export { decodeEvent, encodeEvent, isNewer, restoreState, stamp, stateChanges, type StateChanges, type StateFields } from './codec.ts';
export { wishesOf, type ApprovalCommand, type ChildEnded, type Command, type CommandType, type OutcomeCommand, type Wishes } from './command.ts';
export { actionPrompt, parseAction, type Action } from './action.ts';
export { compactionLevels } from './compaction.ts';
export { candidates } from './choose-model.ts';
export { limitDue } from './limit-due.ts';
export { joinPieces } from './continuation.ts';
export { decide } from './decide.ts';
export { answerIn, answerOf } from './decide-answer.ts';
export { interpreted } from './decide-replied.ts';
export { asked } from './doubt.ts';
export { errorMeanings, errorTypes, type ErrorType } from './error-type.ts';
export { eventTypes, type ApprovalWord, type CompactionLevel, type ChildLimits, type EventBody, type EventType, type OutcomeWord, type PendingCall, type RunEvent, type ToolResult, type UnusualOutcome } from './events.ts';
export { evolve, fold } from './evolve.ts';
export { idIn, isId, shardOf, type IdKind } from './ids.ts';
export {
  defaultLimits, limitNames, limitsOfRun, mostOf, turnTimeoutOf, type AgentLimits, type LimitName, type LimitRange, type Limits, type LimitsOutcome, type TurnTimeout,
  type UnsettableLimit,
} from './limits.ts';
export { forAnotherRun } from './history.ts';
export { isImage, withoutImages } from './images.ts';
export type { AssistantMessage, Attachment, Content, ContentPart, HostNote, KeptMessage, Message, MessageToolCall, ToolImage, Transcript } from './message.ts';
export { questionsOf, runnableCalls } from './questions.ts';
export { inexactNumber, inexactProblem, parseExactly } from './exact-json.ts';
export { recoveryActions, recoverySites, recoveryTable, type Recovery, type RecoveryAction, type RecoverySite } from './recovery.ts';
export { droppableFeatures, estimateTokens, modelRequest, type DroppableFeature, type ModelRequest } from './request.ts';
export { initialState, specOf, type ChildRun, type OpenCall, type RunError, type RunState } from './state.ts';
export {
  isEnded, mayMove, pauseReasons, runStatuses, statusOfStopReason, stopReasons, type EndStatus, type PauseReason, type RunStatus, type StopReason,
} from './stop-reason.ts';
export { ownUsage } from './own-usage.ts';
export { plainName } from './plain-name.ts';
export { planGroups } from './plan-groups.ts';
export { idempotencyKey, ledgerVerdict, oversizedInput, toolUses, type LedgerEntry } from './tool-call.ts';
export {
  noJudgement, type Decision, type Effect, type Judgement, type ModelFailed, type ModelFailure, type ModelReplied, type ModelReply, type OfferedChild, type Prices, type ReplyCall,
  type SettledCall, type Summarised, type SummaryPurpose, type TimeLimit, type ToolCallsSettled, type TurnClaimed, type TurnInput, type Unavailable,
} from './turn-input.ts';
export { readTraceparent, traceIdOf } from './traceparent.ts';
export { addUsage, asWaste, costOf, noUsage, type ModelPrice, type Usage } from './usage.ts';
export {
  isWebhookSecret, mostWebhookAttempts, runOfWebhook, shownAddress, webhookId, webhookOutcome, type WebhookAnswer, type WebhookOutcome, type WebhookTarget, type WebhookTiming,
} from './webhook.ts';
export { capText, utf8Length, wellFormed, type Capped } from './well-formed.ts';
