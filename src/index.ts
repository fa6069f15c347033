export { type Agent, type AgentDefinition, defineAgent } from './agent/agent.ts';
export { type AiSdkAgentSettings, fromAiSdk } from './agent/from-ai-sdk.ts';
export type { Phase } from './agent/phase.ts';
export { defineSkill, type Skill, type SkillDefinition } from './agent/skill.ts';
export { type AuditOptions, createAudit } from './audit/audit.ts';
export type {
  Audit,
  AuditedPhase,
  AuditedStep,
  AuditedTool,
  AuditRecorder,
  AuditTotals,
} from './audit/port.ts';
export type {
  AuditedAt,
  AuditedRun,
  AuditedRunDetail,
  AuditedRunFilter,
  AuditedTree,
  AuditQueries,
  AuditTotal,
  AuditTotalsFilter,
} from './audit/queries.ts';
export type { BudgetAmounts } from './budget/amounts.ts';
export { type BudgetOptions, createBudget, type RollingBudget } from './budget/budget.ts';
export type { ExpectedUse } from './budget/estimate.ts';
export type { Budget, BudgetStanding, CallEstimate, CallUse, EarlierSpend, Reservation } from './budget/port.ts';
export type { ModelPrice, PricedCall, Prices } from './budget/prices.ts';
export type { BudgetStore } from './budget/store.ts';
export { type EncryptOptions, encrypt } from './codec/encrypt.ts';
export type { Codec } from './codec/port.ts';
export { type CompactorOptions, createCompactor } from './compaction/compactor.ts';
export type { CompactionRequest, Compactor } from './compaction/port.ts';
export type { SecretFields } from './compaction/secrets.ts';
export { type CriticOptions, createCritic } from './critic/critic.ts';
export type { Escalator, EscalatorDecision, EscalatorState } from './critic/escalator.ts';
export type { Activity, Critic, CriticHandle, SupervisedRun } from './critic/port.ts';
export { createEscalator, type EscalatorOptions } from './critic/ready-escalator.ts';
export type { Driven } from './executor/drive/driven.ts';
export type { DueRunsOptions } from './executor/drive/due-runs.ts';
export type { DriveOptions } from './executor/drive/options.ts';
export { createExecutor, type Executor } from './executor/executor.ts';
export type { Worker } from './executor/fleet/fleet.ts';
export type { Health, HealthReason } from './executor/fleet/health.ts';
export type { ListenClient, WorkOptions } from './executor/fleet/options.ts';
export type { WorkerStats } from './executor/fleet/worker.ts';
export type { Defaults } from './executor/host/defaults.ts';
export type { OnDue } from './executor/host/due-hints.ts';
export type { JournalOption, JournalOptions } from './executor/host/journal-options.ts';
export { type JsonLoggerOptions, jsonLogger } from './executor/host/logger.ts';
export type { CallInfo, Middleware, ModelCallInfo, ToolCallInfo } from './executor/host/middleware.ts';
export type { Notice, Notify } from './executor/host/notices.ts';
export type { ObservedRun, RunObserver, RunOrigin } from './executor/host/observers.ts';
export type {
  ApprovalPolicy,
  ExecutorOptions,
  FailoverOptions,
  JudgedCall,
  Ports,
  RetentionOptions,
} from './executor/host/options.ts';
export type { SignalName, SignalOptions } from './executor/host/process-signals.ts';
export type { Inspect, RunOptions, StepInfo } from './executor/host/run-options.ts';
export type { Places, TracedCall, TracedRun, Tracing, WatchedExecutor } from './executor/host/tracing.ts';
export type { ApproveOptions, RunControl, WorkflowControl } from './executor/lifecycle/control.ts';
export type { FollowOptions } from './executor/lifecycle/read-events.ts';
export type { RunLogic, RunSnapshot } from './executor/lifecycle/run-logic.ts';
export { type DiagnoseOptions, diagnose, type RunDiagnosis } from './executor/lifecycle/stored/diagnose.ts';
export type { ExecutorCapabilities, ExplainOptions, RunExplanation } from './executor/lifecycle/stored/explain.ts';
export type { EndedRunLine, FindRunOptions, FoundRun, QueuedRunLine } from './executor/lifecycle/stored/find-run.ts';
export type { ForkOptions } from './executor/lifecycle/stored/fork.ts';
export type { HistoryFilter, MessagesOptions } from './executor/lifecycle/stored/history.ts';
export type {
  ListCursor,
  ListedRun,
  ListRunsOptions,
  LiveRunLine,
  QuarantinedRunLine,
  StoredRunLine,
} from './executor/lifecycle/stored/list-runs.ts';
export type { ParkOptions } from './executor/lifecycle/stored/parking.ts';
export type { RecoverOptions, RecoveryEntry, RecoveryReport } from './executor/lifecycle/stored/recover.ts';
export type { MessagePart } from './executor/lifecycle/threads/send-message.ts';
export type {
  Thread,
  ThreadContent,
  ThreadOptions,
  ThreadSend,
  ThreadSent,
} from './executor/lifecycle/threads/threads.ts';
export type { AnswerState } from './executor/lifecycle/waits/answer-wait.ts';
export type { ListedWait, ListWaitsOptions, WaitCursor, WaitPathStep } from './executor/lifecycle/waits/list-waits.ts';
export type { SendEventOptions } from './executor/lifecycle/waits/send-event.ts';
export type { SignalKeys } from './executor/lifecycle/waits/signal-runs.ts';
export type { Accepted, EndedRun, Run } from './executor/run/handle.ts';
export type { RunActor } from './executor/run/run-actor.ts';
export type { RunSummary } from './executor/services/registry.ts';
export type { CallLimits, CallTurn, LimitedCall, TakeOptions } from './limits/port.ts';
export { type LimitRule, type RateLimitsOptions, rateLimits } from './limits/rate-limits.ts';
export type { LogFields, Logger } from './log/log.ts';
export type { OlderModel } from './model/adapt-model.ts';
export type { FallbackFailure, Model, ModelChoice, ModelEntry, Models, TierModels } from './model/port.ts';
export { createPalette } from './palette/palette.ts';
export type { Palette } from './palette/port.ts';
export type { RunCheckpoint } from './record/checkpoint.ts';
export type { InterruptedRun, OpenWait } from './record/interrupted.ts';
export type { KeptRun, ReadableKeptRun } from './record/kept-run.ts';
export type { Migrate, RecordDraft } from './record/migrate.ts';
export type { AttemptEnd, LostCall, PreviousAttempt } from './run/attempt.ts';
export type { Answer } from './run/command.ts';
export type { RunEvent, RunEventBody } from './run/events/body.ts';
export type { ParkedReason, SetupFault } from './run/fields.ts';
export type { RunStatus } from './run/finalize.ts';
export type { JournalEvent } from './run/journal/reader.ts';
export type { Limits } from './run/limits.ts';
export type { ModelSettings } from './run/model-settings.ts';
export type { ToolEffect } from './run/open-step.ts';
export type { PhaseOutput } from './run/phase.ts';
export type { CutAnswer, FinishReason, LostUse, ModelReply, ModelSource, RefusedCall } from './run/reply.ts';
export type {
  ForkedFrom,
  ImageInput,
  ImagePart,
  Invocation,
  Labels,
  ParentCall,
  RunCheckpointMeta,
  RunInfo,
  WorkflowInvocation,
} from './run/request.ts';
export type {
  EndedFacts,
  FailedOutput,
  ListedStatus,
  OkOutput,
  RunFailedError,
  RunOutcome,
  RunOutput,
  RunResult,
  WaitingOutput,
} from './run/result.ts';
export type { ResumeState } from './run/resume.ts';
export type { SentAnswer } from './run/waits/sent-answer.ts';
export type {
  Allowed,
  AnswerVote,
  HowAnswered,
  Person,
  SettledWait,
  Vote,
  Wait,
  WaitFacts,
  Waiting,
} from './run/waits/wait.ts';
export type {
  InspectedStep,
  LogOfMachine,
  MachineAction,
  WorkflowAdvance,
  WorkflowEvent,
} from './run/workflow/advanced.ts';
export type { MachineEvent } from './run/workflow/event.ts';
export type { EnteredEvent, MessageReceiver, WorkflowMessage, WorkflowState } from './run/workflow/state.ts';
export type { Schedule, ScheduledRun } from './schedules/definition.ts';
export type { ListedSchedule, PauseOptions, Schedules } from './schedules/schedules.ts';
export type { Checkpointer } from './store/checkpointer.ts';
export type { RunStats } from './store/counting/port.ts';
export type { DueList, DueRun } from './store/due-port.ts';
export type { CheckpointerFactory } from './store/factory.ts';
export { type MemoryStore, memoryStore } from './store/memory/memory-store.ts';
export type { CheckpointStore } from './store/port.ts';
export type { ScheduleTimes, TickCount } from './store/schedules/port.ts';
export type {
  ListThreadsOptions,
  OnBusy,
  ReadThreadOptions,
  ThreadLine,
  ThreadMessage,
  ThreadTurn,
  TurnEnd,
} from './store/thread-port.ts';
export type { AiSdkTool, AiSdkToolEntry } from './tool/ai-sdk.ts';
export type {
  AnswererCheck,
  Answerers,
  Approval,
  ApprovalContext,
  ApproverCheck,
  NeedsApproval,
  Verdict,
} from './tool/approval.ts';
export type { AnswerOf, CallWaits, ExpectedEvent, Question } from './tool/call-waits.ts';
export {
  type ContentOptions,
  type ToolContent,
  type ToolContentPart,
  type ToolFileData,
  toolContent,
} from './tool/content.ts';
export {
  defineTool,
  type InputOf,
  type RunTallies,
  type Tool,
  type ToolContext,
  type ToolDefinition,
  type ToolInvocation,
} from './tool/define-tool.ts';
export type { AiSdkOutput, AiSdkSchemaOf, DataOf, GivenOf, ToolInput, Validation, ValueOf } from './tool/schema.ts';
export type { ToolEntries } from './tool/toolbox.ts';
export type { Clock } from './values/clock.ts';
export { type ErrorCode, type ErrorPolicy, isPawlError, type KnownErrorCode, PawlError } from './values/error-codes.ts';
export type { ErrorCause, ErrorData } from './values/error-data.ts';
export { retryOf } from './values/error-data.ts';
export type { AnsweredBefore } from './values/errors.ts';
export type { JsonObject, JsonValue } from './values/json.ts';
export type { AssistantMessage, Message, ToolOutput } from './values/message.ts';
export type { MessageMark, RecordedCompaction } from './values/message-mark.ts';
export type { Redaction, RedactionPlace } from './values/redact.ts';
export type { Spend, Usage } from './values/usage.ts';
export { defineWorkflow, type WorkflowDefinition } from './workflow/define.ts';
export type { StateOutline, TransitionOutline } from './workflow/outline.ts';
export type { MigratedSnapshot, MigrateWorkflow } from './workflow/program.ts';
export {
  type AgentInput,
  type AgentOutput,
  type AskedPersons,
  type AskOptions,
  ask,
  type FromInput,
  type SignalWaitOptions,
  step,
  waitForSignal,
} from './workflow/step.ts';
export type { WorkflowView } from './workflow/view.ts';
export type {
  EventBySchema,
  OtherEvent,
  TakesBySchema,
  TypedEvent,
  Workflow,
  WorkflowEventOf,
  WorkflowInput,
  WorkflowOutput,
  WorkflowStart,
  WorkflowTakes,
} from './workflow/workflow.ts';
