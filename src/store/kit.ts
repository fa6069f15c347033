// The entry point `pawl/stores/kit`: the parts that make a store of a driver. It contains no driver.
export type { CommandToSend, StoredCommand } from './commands.ts';
export { pageOf } from './cursor.ts';
export type { Piece, Pieces, StoredPieces } from './encoding/blob-refs.ts';
export type { EncodedHead } from './encoding/encode.ts';
export type { MessageRow } from './encoding/encryption.ts';
export { type StepText, type StepTexts, stepAfter } from './encoding/step-texts.ts';
export type { StoredBody } from './encoding/stored-body.ts';
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
export type { Lease, Ownership } from './lease.ts';
export {
  changedValue,
  factsOfValue,
  headsIn,
  type KeptValue,
  keptIn,
  type RecordValue,
  type RunValue,
  type StoreTimes,
} from './run-value.ts';
export type {
  ListedHead,
  ListPage,
  MessageReader,
  StoreDriver,
  StoredTexts,
  StoreWrite,
  WriteKind,
} from './store-driver.ts';
export { type FullStore, type StoreFromOptions, storeFrom } from './store-from.ts';
export {
  acknowledge,
  appendDelta,
  type Change,
  type ClaimWish,
  claimRun,
  type Decide,
  type Decided,
  type Decision,
  decideAsking,
  decideNow,
  deleteRun,
  type Fact,
  factsOfDamage,
  type InboxFacts,
  keepOutcome,
  type OutcomeToKeep,
  type RecordFacts,
  type RunFacts,
  releaseClaim,
  renewClaim,
  saveRecord,
  sendCommand,
  type ToStore,
  type Writer,
} from './transitions.ts';
