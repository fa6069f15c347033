// The entry point `pawl/stores/kit`: the parts that make a store of a driver. It contains no driver.
export type { DueOfRecord } from '../record/interrupted.ts';
export {
  addTotals,
  type DayTotals,
  isInRange,
  type TotalsRange,
  type TotalsRow,
  totalColumns,
} from '../record/totals.ts';
export type { CommandToSend, StoredCommand } from './commands.ts';
export { dueAmong, endedPageOf, type FoundEnded, isFree, pageOf } from './cursor.ts';
export {
  type DeliveryDriver,
  type DeliveryMethods,
  deliveryPauseMs,
  type TakeDeliveries,
  type TakenDelivery,
} from './deliveries/deliveries.ts';
export { type Due, isResting, isTimeToTake, ON_COMMAND } from './due.ts';
export type { EncodedHead } from './encoding/encode.ts';
export type { MessageRow } from './encoding/encryption.ts';
export type { Filed } from './encoding/filed.ts';
export type { Piece, Pieces, StoredPieces } from './encoding/piece-refs.ts';
export { type StepText, type StepTexts, stepAfter } from './encoding/step-texts.ts';
export type { StoredBody } from './encoding/stored-body.ts';
export type { JournalRow, StoredJournal } from './encoding/stored-journal.ts';
export {
  GroupCommit,
  type GroupCommitOptions,
  giveAnswers,
  type Job,
  type JobOptions,
  type Settled,
  settled,
  settledLater,
} from './group-commit.ts';
export type { ClaimOptions, ListDueOptions, TakeDueOptions, TakenRun, TakenRuns, TakingStore } from './port.ts';
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
} from './rules/decision.ts';
export { endRun, eraseRun, type RunToEnd } from './rules/history.ts';
export { acknowledge, sendCommand } from './rules/inbox.ts';
export type { IsDead, Lease, Ownership } from './rules/lease.ts';
export { type ClaimWish, claimRun, heldFor, leaveRun, releaseClaim, renewClaim, takeRun } from './rules/ownership.ts';
export type {
  ThreadChange,
  ThreadDecision,
  ThreadFacts,
  ThreadRow,
  TurnQuery,
  TurnRow,
  TurnState,
} from './rules/thread-rows.ts';
export { begunTurnsIn, factsOfTurns, queueOf, turnsAmong } from './rules/turn-lists.ts';
export { appendDelta, deleteRun, keepOutcome, type RunOutcomeToKeep, saveRecord } from './rules/writes.ts';
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
} from './run-value.ts';
export type {
  DueHeads,
  DueMethods,
  EndedHead,
  EndedPage,
  ForkWrite,
  FullStore,
  HistoryMethods,
  JournalDriver,
  JournalMethods,
  ListedHead,
  ListedThread,
  ListPage,
  MessageRange,
  MessageReader,
  PartReader,
  RowsPage,
  StoreDriver,
  StoredPart,
  StoredTexts,
  StoreOf,
  StoreWrite,
  TakeDue,
  TakenHead,
  TakenHeads,
  ThreadDriver,
  ThreadMethods,
  ThreadPage,
  ThreadWrite,
  WriteKind,
} from './store-driver.ts';
export { type StoreFromOptions, storeFrom } from './store-from.ts';
export {
  inTurns,
  isWished,
  type Taking,
  takeAmong,
} from './taking/in-turns.ts';
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
  type TopicDriver,
  type TopicValue,
  type TopicWait,
  unexpired,
  withDelivered,
  withKept,
  withoutWait,
  withWait,
} from './topics.ts';
