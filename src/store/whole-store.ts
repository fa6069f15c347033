import type { CountingStore } from './counting/port.ts';
import type {
  AppendingStore,
  ChangeStore,
  DeliveryStore,
  EventStore,
  HistoryStore,
  JournalStore,
  OutcomeStore,
  StoreGroups,
  TakingStore,
} from './port.ts';
import type { PartStore } from './reading/record-part.ts';
import type { ThreadStore } from './thread-port.ts';

/**
 * All that a store may be, as the stores of the package are: it appends, owns, carries commands and signals, lets runs rest, keeps
 * outcomes, the records of ended runs, threads and schedules, has a journal, and gives turns to limited calls. An interface of the port that is not named here has no effect.
 */
export type WholeStore = StoreGroups &
  AppendingStore &
  ChangeStore &
  CountingStore &
  DeliveryStore &
  EventStore &
  HistoryStore &
  JournalStore &
  OutcomeStore &
  PartStore &
  TakingStore &
  ThreadStore;
