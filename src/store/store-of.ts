import type { CountingStore } from './counting/port.ts';
import type { DeliveryMethods } from './deliveries/deliveries.ts';
import type {
  AppendingStore,
  ChangeStore,
  ControlStore,
  DueStore,
  EventStore,
  HistoryStore,
  JournalStore,
  OutcomeStore,
  StoreGroups,
  TakingStore,
} from './port.ts';
import type { PartStore } from './reading/record-part.ts';
import type { JournalDriver, StoreDriver, ThreadDriver } from './store-driver.ts';
import type { ThreadStore } from './thread-port.ts';
import type { TopicDriver } from './topics.ts';

/** Appends, owns, carries commands, and keeps outcomes. */
export interface FullStore extends AppendingStore, ControlStore, OutcomeStore {
  /** Waits for the pending writes. Every later call is refused. */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** The methods that a store has because its driver has `listDue`, or `takeDue` or `topics` besides. */
export type DueMethods<D> = D extends { listDue: unknown; countResting: unknown }
  ? Pick<DueStore, 'leave' | 'listDue' | 'countResting'> &
      (D extends { countRuns: unknown } ? Pick<CountingStore, 'countRuns'> : unknown) &
      (D extends { takeDue: unknown } ? Pick<TakingStore, 'takeDue' | 'heldUntil'> : unknown) &
      (D extends { readonly topics: TopicDriver } ? Pick<EventStore, 'expect' | 'signal'> : unknown)
  : unknown;

/** The methods that a store has because its driver has `listEnded`. */
export type HistoryMethods<D> = D extends { listEnded: unknown; loadEnded: unknown; forgetEnded: unknown }
  ? Required<Pick<HistoryStore, 'end' | 'listEnded' | 'erase' | 'forgetEnded'>> &
      (D extends { totals: unknown } ? Required<Pick<HistoryStore, 'totals'>> : unknown)
  : unknown;

/** The methods that a store has because its driver has a journal. */
export type JournalMethods<D> = D extends { readonly journal: JournalDriver }
  ? Pick<JournalStore, 'publish' | 'readEvents'> & Pick<PartStore, 'loadPart'>
  : unknown;

/** The methods that a store has because its driver has threads. */
export type ThreadMethods = Omit<ThreadStore, keyof HistoryStore>;

/**
 * The store of a driver: a `DueStore` if it has `listDue`, besides a `TakingStore` if it has `takeDue`, and so on.
 */
export type StoreOf<D extends StoreDriver> = FullStore &
  DueMethods<D> &
  HistoryMethods<D> &
  DeliveryMethods<D> &
  JournalMethods<D> &
  (D extends { changeMark: unknown } ? Pick<ChangeStore, 'changeMark'> : unknown) &
  (D extends { readonly threads: ThreadDriver } ? ThreadMethods : unknown) &
  Pick<StoreGroups, Extract<keyof D, 'schedules' | 'limits'>>;
