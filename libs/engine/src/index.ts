export { ArchiveConflict, ArchiveFailed, type Archive, type ArchivedRun, type ArchivedSchedule, type EndedRun, type Removal, type Segment } from './ports/archive.ts';
export type { AnswerJudge, AnswerView } from './ports/answer-judge.ts';
export {
  mostDecisions, mostRuns, noTotals, type ArmTotals, type AssignRun, type Assignment, type CanaryBounds, type CanaryDecision, type CanaryDefinition, type CanaryJudge, type CanaryJudgement,
  type CanaryMove, type CanaryOutcome, type CanaryReading, type CanaryRun, type CanaryState, type CanaryStatus, type CanaryStore, type CanaryVerdict,
} from './ports/canary-store.ts';
export { deliveryStates, type DeliveryDirectory, type DeliveryState, type DeliveryUpkeep, type ListDeliveries, type NewDelivery, type Redeliver, type Settlement, type StoredDelivery, type TakeDeliveries, type TakenDelivery } from './ports/webhook-outbox.ts';
export type { WebhookSender, WebhookSending } from './ports/webhook-sender.ts';
export type { RunUse, UsageQuery, UsageRow } from './ports/usage-sums.ts';
export type { Clock, Randomness } from './ports/clock.ts';
export type { CronReading, CronRule, CronTimes } from './ports/cron-times.ts';
export type { EventFeed, FeedNotice } from './ports/event-feed.ts';
export type { Job, JobConsumer, JobHandler, JobOutcome } from './ports/job-queue.ts';
export type { Bench, FleetView, ModelFleet, OpenBreaker, Outcomes, Rates, Reservation } from './ports/model-fleet.ts';
export type { Admission, Asking, ModelCall, ModelGateway, ModelOutcome, Permit } from './ports/model-gateway.ts';
export type {
  NewSchedule, Schedule, ScheduleAdvance, ScheduleChange, ScheduleDefinition, ScheduleDirectory, ScheduleDuty, ScheduleError, ScheduledRun, ScheduleStore, ScheduleUpkeep,
} from './ports/schedule-store.ts';
export { noSpan, noTracer, traced, type Carrier, type Span, type SpanContext, type SpanEnd, type Traced, type Tracer } from './ports/tracer.ts';
export { createArchiveProbe, type ArchiveProbe, type ArchiveProbeOptions } from './archive-probe.ts';
export type { IssuedKey, KeyDirectory, KeyScope } from './ports/key-directory.ts';
export type { SeenWorker, WorkerRegistry, WorkerReport } from './ports/worker-registry.ts';
export { StoreAway } from './ports/run-store.ts';
export type {
  Append, AppendReply, Claim, Claimed, ClaimReply, ClaimRequest, CommandReply, Commit, CommitReply, CreateReply, CreateRun, CreateSession, EventRange, InboxEntry,
  LedgerWrite, ListRuns, Move, Next, PumpReply, RemoveReply, RemoveRun, RunDirectory, RunSnapshot, RunStore, SealedRange, SendCommand, StoredSession, StoredState, ToldCommand, TurnStore,
  WatchReply, WatchRequest,
} from './ports/run-store.ts';
export type { ActiveRuns, ArchiveDuty, RestoredRun, StoreUpkeep, WriteBack } from './ports/store-upkeep.ts';
export type { ToolAttachment, KnownChanges, ToolCatalogue, ToolChanges, ToolRun, ToolRunner, ToolRunResult } from './ports/tool-runner.ts';
export { callDigest } from './approvals.ts';
export { archiveDue, archiveRun, DutyRefused, SealedEventsMissing, type ArchiveDeps, type ArchiveOptions, type ArchivingRound } from './archive-run.ts';
export { archiveSchedules, type ArchivedScheduleDocument, type ArchiveSchedulesDeps } from './archive-schedules.ts';
export { archiveFirst, type ArchiveFirst } from './archive-first.ts';
export { auditRun, type AuditResult } from './audit-run.ts';
export { canaryOutcome, judgeCanary, judgeWhenDue, orderCanary, type CanaryDeps, type CanaryOrder, type OrderOutcome } from './canary.ts';
export type { StoreFound } from './changed-store.ts';
export type { LeaveReason } from './hold.ts';
export { childRunId, createChildRuns, type ChildDeps, type ChildRuns, type ChildStart } from './child-runs.ts';
export { createRun, mintRunId, type Arms, type CreateDeps, type CreateOptions, type NewRun } from './create-run.ts';
export { executeTurn, type DeliveryLimits, type TurnDeps, type TurnOutcome } from './execute-turn.ts';
export { forkPoint, type ForkPoint } from './fork-run.ts';
export { fireSchedules, scheduledRunId, type Fired, type FireDeps, type FireRound } from './fire-schedules.ts';
export { finishRun, type FinishDeps } from './finish-run.ts';
export { LogFollowers } from './follow-log.ts';
export { HeldRuns } from './held-runs.ts';
export { Quarantine } from './quarantine.ts';
export { IncrementWriter, noIncrements, type IncrementOptions } from './increments.ts';
export { LogGap, LogSetBack, readLog, wholeLog, type LogDeps, type LogEntry } from './read-log.ts';
export { foldLog, replayRun, type ReplayReport } from './replay-run.ts';
export { LedgerOfLog } from './ledger-of-log.ts';
export { restoreRuns, type RestoreDeps, type RestoreOptions, type RestoreSummary } from './restore.ts';
export { restoreSchedules, type RestoredSchedules, type RestoreSchedulesDeps } from './restore-schedules.ts';
export { archivedDocument, runView, type RunView } from './run-view.ts';
export { shownWhenArchived } from './shown-when-archived.ts';
export { WarmRuns } from './warm-runs.ts';
export { deliveryOf, maxWebhookBytes, webhookBody } from './webhook-body.ts';
export { WebhookDispatcher, type DispatchDeps, type DispatchOptions } from './webhook-dispatcher.ts';
