import { StoreUnavailableError, UnsupportedError } from '../values/errors.ts';
import type { WholeStore } from './whole-store.ts';

/** What each method of a store does. A method of the port without a line does not compile: every store would lose it. */
const storeMethods = {
  save: 'writes',
  append: 'writes',
  delete: 'writes',
  load: 'reads',
  listInterrupted: 'reads',
  claim: 'writes',
  renew: 'writes',
  release: 'writes',
  keepOutcome: 'writes',
  outcome: 'reads',
  forgetOutcomes: 'writes',
  takeUndelivered: 'writes',
  markDelivered: 'writes',
  send: 'writes',
  inbox: 'reads',
  acknowledge: 'writes',
  leave: 'writes',
  listDue: 'reads',
  countResting: 'reads',
  countRuns: 'reads',
  takeDue: 'writes',
  heldUntil: 'reads',
  expect: 'writes',
  signal: 'writes',
  end: 'writes',
  listEnded: 'reads',
  erase: 'writes',
  forgetEnded: 'writes',
  totals: 'reads',
  publish: 'writes',
  readEvents: 'reads',
  loadPart: 'reads',
  changeMark: 'reads',
  admit: 'writes',
  readThread: 'reads',
  historyOf: 'reads',
  turnOf: 'reads',
  queuedRun: 'reads',
  turns: 'reads',
  listThreads: 'reads',
  rewind: 'writes',
  fork: 'writes',
  deleteThread: 'writes',
  schedules: 'reads',
  noteSchedule: 'writes',
  takeTurns: 'writes',
} satisfies { readonly [Method in keyof WholeStore]-?: 'reads' | 'writes' };

/** The name of a method that a store may have. */
export type MethodName = keyof typeof storeMethods;

/** The names of all methods that a store may have. */
export const methodNames = Object.keys(storeMethods) as readonly MethodName[];

/** The names of the methods that write. */
export const writingMethods: readonly MethodName[] = methodNames.filter((name) => storeMethods[name] === 'writes');

/**
 * Returns a store of which each method that writes is refused with UNSUPPORTED. Only methods that the store has are replaced.
 * @param place where it is, for the message
 */
export function withoutWrites<Store extends object>(store: Store, place: string): Store {
  const refuse = async (): Promise<never> => {
    throw readOnlyError(place);
  };
  const refused = writingMethods.filter((name) => name in store).map((name) => [name, refuse] as const);
  return { ...store, ...Object.fromEntries(refused) };
}

/** Returns the error of a write to a store that is open for reading. */
function readOnlyError(place: string): UnsupportedError {
  return new UnsupportedError(`${place} is open for reading only; open it without the option readOnly to write`);
}

/** Returns the error of a store that an older version made: the first process that writes to it updates its layout. */
export function olderLayout(place: string, found: number, current: number): StoreUnavailableError {
  return new StoreUnavailableError(
    `${place} has layout ${found}, and this Pawl reads layout ${current}: the first process that writes to it updates it; a reader does not`,
  );
}
