import { readProperty } from '../values/error-data.ts';
import { kindOf, missingMethods } from '../values/known-options.ts';
import type { RestingStore } from './due-port.ts';
import type { KeepingStore } from './history-port.ts';
import type { AppendingStore, ChangeStore, CheckpointStore, ControlStore, OwningStore, StoreGroups } from './port.ts';
import { groupMethods } from './read-only.ts';

/* What a store can do besides its four methods. It has all methods of an interface, or none: so one of them tells. */

const has = (store: object, method: string) => typeof (store as Record<string, unknown>)[method] === 'function';
/** Returns whether a store writes only new messages: it has `append`. */
export const isAppending = (store: CheckpointStore): store is AppendingStore => has(store, 'append');
/** Returns whether a store has claims: it has `claim`. */
export const isOwning = (store: CheckpointStore): store is OwningStore => has(store, 'claim');
/** Returns whether a store carries commands: it has the group `commands`. */
export const carriesCommands = (store: CheckpointStore): store is ControlStore => store.commands !== undefined;
/** Returns whether runs rest in a store: it has the group `due`. */
export const isDue = (store: CheckpointStore): store is RestingStore => store.due !== undefined;
/** Returns whether a store keeps the records of runs that ended: it has the group `history`. */
export const isKeepingRecords = (store: CheckpointStore): store is KeepingStore => store.history !== undefined;
/** Returns whether a store tells that nothing has changed: it has `changeMark`. */
export const isMarking = (store: CheckpointStore): store is ChangeStore => has(store, 'changeMark');
/** Returns whether a store knows which of the ends that it keeps are delivered: it has the groups `outcomes` and `deliveries`. */
export const isDelivering = (
  store: CheckpointStore,
): store is CheckpointStore & Pick<StoreGroups, 'outcomes' | 'deliveries'> =>
  store.outcomes !== undefined && store.deliveries !== undefined;
/** Returns whether processes of several computers share a store: it says `isShared`. */
export const isShared = (store: CheckpointStore): boolean => readProperty(store, 'isShared') === true;

/**
 * Checks that a value has the methods of a CheckpointStore.
 * @param name of the option, for the error
 * @throws {TypeError} for a value that lacks one of the four methods: runs on it would not be durable; and for a group that is not
 *   whole, or whose methods stand outside
 */
export function checkStore(name: string, store: unknown): asserts store is CheckpointStore {
  const missing = missingMethods(store, ['save', 'load', 'delete', 'listInterrupted']);
  if (missing.length === 0) return checkGroups(name, store);
  const got = missing.length < 4 ? `an object; it has no ${missing.join(', ')}` : kindOf(store);
  const advice = "make one, for example sqliteStore({ path: 'runs.db' }), or leave it out";
  throw new TypeError(`${name} must be a store, not ${got}; ${advice}`);
}

/** A method of each group that has stood at the store itself, and that no other thing is called. */
const outside = {
  acknowledge: 'commands',
  expect: 'waits',
  keepOutcome: 'outcomes',
  takeUndelivered: 'deliveries',
  listDue: 'due',
  listEnded: 'history',
  admit: 'threads',
  readEvents: 'journal',
  noteSchedule: 'schedules',
  takeTurns: 'limits',
} as const;

function checkGroups(name: string, store: unknown): void {
  for (const [group, methods] of Object.entries(groupMethods)) {
    const found = readProperty(store, group);
    const missing = found === undefined ? [] : missingMethods(found, Object.keys(methods));
    if (missing.length > 0)
      throw new TypeError(`${name}: its group ${group} has no ${missing.join(', ')}; a group is whole, or absent`);
  }
  for (const [method, group] of Object.entries(outside))
    if (readProperty(store, group) === undefined && typeof readProperty(store, method) === 'function')
      throw new TypeError(
        `${name} has ${method} at its top; the methods of this kind are the group ${group} of a store`,
      );
}
