import type { AppendingStore, ChangeStore, CommandStore, OutcomeStore, OwningStore, StoreGroups } from './port.ts';
import type { StoreDriver } from './store-driver.ts';

/** Appends, owns, carries commands, and keeps outcomes. */
export interface FullStore extends AppendingStore, OwningStore {
  readonly commands: CommandStore;
  readonly outcomes: OutcomeStore;
  /** Waits for the pending writes. Every later call is refused. */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** The store of a driver: it has the groups of its driver. */
export type StoreOf<D extends StoreDriver> = FullStore &
  (D extends { changeMark: unknown } ? Pick<ChangeStore, 'changeMark'> : unknown) &
  Pick<StoreGroups, Extract<keyof D, keyof StoreGroups>>;

/**
 * All that a store may be, as the stores of the package are: it appends, owns, carries commands and signals, lets runs rest, keeps
 * outcomes, the records of ended runs, threads and schedules, has a journal, and gives turns to limited calls. An interface of the port that is not named here has no effect.
 */
export type WholeStore = StoreGroups & AppendingStore & ChangeStore & OwningStore;
