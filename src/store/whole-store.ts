import type { CountingStore } from './counting/port.ts';
import type { LimitStore } from './limits/port.ts';
import type {
  AppendingStore,
  ChangeStore,
  DeliveryStore,
  EventStore,
  HistoryStore,
  JournalStore,
  OutcomeStore,
  TakingStore,
} from './port.ts';
import type { PartStore } from './reading/record-part.ts';
import type { ScheduleStore } from './schedules/port.ts';
import type { ThreadStore } from './thread-port.ts';

/**
 * All that a store may be, as the stores of the package are: it appends, owns, carries commands and signals, lets runs rest, keeps
 * outcomes, the records of ended runs, threads and schedules, has a journal, and gives turns to limited calls. An interface of the port that is not named here has no effect.
 */
export interface WholeStore
  extends AppendingStore,
    ChangeStore,
    CountingStore,
    DeliveryStore,
    EventStore,
    HistoryStore,
    JournalStore,
    LimitStore,
    OutcomeStore,
    PartStore,
    ScheduleStore,
    TakingStore,
    ThreadStore {}
