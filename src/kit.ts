// The entry point `pawl/stores/kit`: the parts that make a store of a driver. It contains no driver.
export type {
  BudgetCall,
  BudgetTerms,
  LeavingAmounts,
  ReservationWish,
  RunSpend,
  StandingAmounts,
} from './budget/store.ts';
export type { Place } from './codec/port.ts';
export { type SplitHistory, splitForCompaction } from './compaction/split.ts';
export { asSnapshot, type PersistedRun } from './executor/host/snapshot.ts';
export { finalizeCheckpoint } from './executor/run/record/finalize-checkpoint.ts';
export { type RunHead, toCheckpoint, toResumeState } from './record/checkpoint.ts';
export type { RunDelta } from './record/delta.ts';
export { type DueOfRecord, interruptedRun, quarantinedRun } from './record/interrupted.ts';
export { migrateRecord } from './record/migrate.ts';
export { parseCheckpoint } from './record/parse.ts';
export type { RunCheckpointState } from './record/state.ts';
export { decodeCheckpoint, encodeCheckpoint } from './record/text.ts';
export {
  addTotals,
  type DayTotals,
  isInRange,
  type TotalsRange,
  type TotalsRow,
  totalColumns,
} from './record/totals.ts';
export type { RunAttempt, RunRetry, UsedByEnd } from './run/attempt.ts';
export type { WholeValue, Writable } from './run/change.ts';
export type { Command, SentCommand, SignalAnswer, UnknownCommand } from './run/command.ts';
export type {
  GivenFields,
  HeadFields,
  IdentityFields,
  RunDefinition,
  StartFields,
  ThreadPlace,
} from './run/fields.ts';
export { type CheckpointOutcome, classifyCheckpointOutcome } from './run/finalize.ts';
export { checkRunId } from './run/identity.ts';
export type { ContentPlace, JournalEntry, JournalWrite, TextPlace } from './run/journal/entry.ts';
export type { GuardCounters } from './run/limits.ts';
export type { OpenCall, OpenStep, WaitEnd } from './run/open-step.ts';
export type { OpenPhase, PhaseFacts, PhaseStart } from './run/phase.ts';
export type { Progress, ToolFacts } from './run/progress.ts';
export type { OutcomeOwner } from './run/result.ts';
export type { Transcript } from './run/transcript.ts';
export { type CheckpointerOptions, createCheckpointer } from './store/checkpointer.ts';
export type { CommandToSend, StoredCommand } from './store/commands.ts';
export { type CountedHead, countAmong } from './store/counting/counts.ts';
export type { RunCounts } from './store/counting/port.ts';
export type { StoredRows, StoredRowsReader } from './store/counting/rows.ts';
export { dueAmong, endedPageOf, type FoundEnded, isFree, pageOf } from './store/cursor.ts';
export {
  type DeliveryDriver,
  deliveryPauseMs,
  type TakeDeliveries,
  type TakenDelivery,
} from './store/deliveries/deliveries.ts';
export type { DeliveryStore, TakeUndeliveredOptions, Undelivered, UndeliveredEnd } from './store/deliveries/port.ts';
export { type Due, isResting, isTimeToTake, ON_COMMAND } from './store/due.ts';
export type {
  DueStore,
  LeaveOptions,
  ListDueOptions,
  RestingStore,
  TakeDueOptions,
  TakenRun,
  TakenRuns,
} from './store/due-port.ts';
export type { EncodedHead } from './store/encoding/encode.ts';
export type { MessageRow } from './store/encoding/encryption.ts';
export type { Filed } from './store/encoding/filed.ts';
export type { Piece, Pieces, StoredPieces } from './store/encoding/piece-refs.ts';
export { type StepText, type StepTexts, stepAfter } from './store/encoding/step-texts.ts';
export type { StoredBody } from './store/encoding/stored-body.ts';
export type { JournalRow, StoredJournal } from './store/encoding/stored-journal.ts';
export { type BeginOptions, createCheckpointerFactory, type FactoryOptions } from './store/factory.ts';
export {
  GroupCommit,
  type GroupCommitOptions,
  giveAnswers,
  type Job,
  type JobOptions,
  type Settled,
  settled,
  settledLater,
} from './store/group-commit.ts';
export type {
  Ended,
  EndedCursor,
  EndOptions,
  HistoryStore,
  KeepingStore,
  ListEndedOptions,
} from './store/history-port.ts';
export type {
  JournalPage,
  JournalStore,
  LoadPartOptions,
  ReadEventsOptions,
  RecordPart,
} from './store/journal-port.ts';
export {
  type Bucket,
  type ChargedBuckets,
  type DecideTurns,
  IDLE_MS,
  type LimitDriver,
  REMOVED_AT_ONCE,
} from './store/limits/buckets.ts';
export type { BucketCost, BucketMove, CallCosts, LimitStore, TakenTurn, TakenTurns } from './store/limits/port.ts';
export {
  changedValue,
  commandsIn,
  type DeliveryValue,
  deliveriesAmong,
  type EndedValue,
  endedIn,
  factsOfValue,
  headsIn,
  isStale,
  type KeptValue,
  keptIn,
  type RecordValue,
  type RunValue,
  type StoreTimes,
  type ValueRuns,
} from './store/memory/run-value.ts';
export type {
  AppendingStore,
  ChangeStore,
  Claim,
  ClaimOptions,
  CommandStore,
  ControlStore,
  Cursor,
  EventStore,
  InboxOf,
  KeepOptions,
  ListOptions,
  LoadOptions,
  OutcomeStore,
  OwningStore,
  ReleaseOptions,
  Signal,
  StoreGroups,
  WaitStore,
  WriteOptions,
} from './store/port.ts';
export { type MethodName, type StoreMethod, type WrapMethod, wrapStore } from './store/read-only.ts';
export type { LandedState } from './store/record-writes.ts';
export {
  type Change,
  type Decide,
  type Decided,
  type Decision,
  decideAsking,
  decideNow,
  type EndedToKeep,
  type EndToDeliver,
  type Fact,
  factsOfDamage,
  type InboxFacts,
  type Need,
  type OutcomeToKeep,
  type RecordFacts,
  type RunFacts,
  type ToStore,
  type Writer,
} from './store/rules/decision.ts';
export { endRun, eraseRun, type RunToEnd } from './store/rules/history.ts';
export { acknowledge, sendCommand } from './store/rules/inbox.ts';
export type { IsDead, Lease, Ownership } from './store/rules/lease.ts';
export {
  type ClaimWish,
  claimRun,
  heldFor,
  leaveRun,
  readDeployment,
  releaseClaim,
  renewClaim,
  takeRun,
} from './store/rules/ownership.ts';
export type {
  ThreadChange,
  ThreadDecision,
  ThreadFacts,
  ThreadRow,
  TurnQuery,
  TurnRow,
  TurnState,
} from './store/rules/thread-rows.ts';
export { begunTurnsIn, factsOfTurns, queueOf, turnsAmong } from './store/rules/turn-lists.ts';
export { appendDelta, deleteRun, keepOutcome, type RunOutcomeToKeep, saveRecord } from './store/rules/writes.ts';
export { type NotedRow, noteRow, type ScheduleFacts } from './store/schedules/note-row.ts';
export type {
  ScheduleStore,
  ScheduleTimes,
  StoredSchedule,
  TickCount,
  TickRun,
} from './store/schedules/port.ts';
export type {
  CommandDriver,
  DueDriver,
  DueHeads,
  EndedHead,
  EndedPage,
  ForgetOptions,
  ForkWrite,
  HistoryDriver,
  JournalDriver,
  ListedHead,
  ListedThread,
  ListPage,
  MessageRange,
  MessageReader,
  OutcomeDriver,
  PartReader,
  RowsPage,
  ScheduleDriver,
  ScheduleRow,
  ScheduleWrite,
  StoreDriver,
  StoredPart,
  StoredTexts,
  StoreWrite,
  TakeDue,
  TakenHead,
  TakenHeads,
  ThreadDriver,
  ThreadPage,
  ThreadWrite,
  WriteKind,
} from './store/store-driver.ts';
export { type StoreFromOptions, storeFrom } from './store/store-from.ts';
export type {
  FullStore,
  StoreOf,
  WholeStore,
} from './store/store-of.ts';
export { inTurns, isWished, type Taking, takeAmong } from './store/taking/in-turns.ts';
export type {
  Admission,
  BegunTurn,
  Compaction,
  ThreadKey,
  ThreadPlaceOf,
  ThreadStore,
  TurnToAdmit,
} from './store/thread-port.ts';
export {
  checkRoom,
  type DeliveredSignal,
  type ExpectWrite,
  emptyTopic,
  isEmptyTopic,
  isNewSignal,
  type KnownSignal,
  knownIn,
  type SignalWrite,
  type StoredSignal,
  type TopicValue,
  type TopicWait,
  unexpired,
  type WaitDriver,
  withDelivered,
  withKept,
  withoutWait,
  withWait,
} from './store/topics.ts';
export type { Hidden } from './values/hidden.ts';
export { type ModelUse, modelUses, type RunModel, type RunUse } from './values/model-use.ts';
export { estimateTokens } from './values/texts/token-estimate.ts';
