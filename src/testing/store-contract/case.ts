import assert from 'node:assert/strict';
import {
  carriesCommands,
  isAppending,
  isDelivering,
  isDue,
  isEvents,
  isKeepingOutcomes,
  isKeepingRecords,
  isMarking,
  isOwning,
} from '../../store/capabilities.ts';
import type { RestingStore } from '../../store/due-port.ts';
import type { KeepingStore } from '../../store/history-port.ts';
import type {
  AppendingStore,
  ChangeStore,
  CheckpointStore,
  ControlStore,
  DeliveryStore,
  EventStore,
  OutcomeStore,
  OwningStore,
  StoreGroups,
} from '../../store/port.ts';

/** What the contract needs of a store's tests. */
export interface StoreUnderTest<S extends CheckpointStore = CheckpointStore> {
  /** Makes an empty store for each case. */
  create(): Promise<S>;
  /** Opens the storage of `store` again, as another process would. Without it, cases that need it are skipped. */
  reopen?(store: S): Promise<S>;
  /** Damages the stored record of a run. Without it, cases that need it are skipped. */
  damage?(store: S, runId: string, kind: DamageKind): Promise<void>;
  /** Called after each case with every store that it used. */
  dispose?(store: S): Promise<void>;
  /** Repeats the random cases of an earlier run; the failure names the seed. */
  readonly seed?: number;
}

/** `corrupt`: some byte is wrong. `newer`: a newer version wrote the record. */
export type DamageKind = 'corrupt' | 'newer';

/** A case of the contract, for any test runner. */
export interface ContractCase {
  readonly title: string;
  /**
   * Rejects if the store breaks the promise. If the store lacks the methods of a case, it calls `skip` of the runner's
   * context (node:test and vitest pass one) and does nothing.
   */
  readonly run: (...context: readonly unknown[]) => Promise<void>;
}

/** What a case gets. */
interface Bench<S extends CheckpointStore> {
  readonly store: S;
  readonly seed: number;
  reopen(): Promise<S>;
  damage(runId: string, kind: DamageKind): Promise<void>;
}

/** A case without a store. */
export interface Draft {
  readonly title: string;
  readonly needs?: 'reopen' | 'damage';
  readonly offers: (store: CheckpointStore) => boolean;
  readonly body: (bench: Bench<never>) => Promise<void>;
}

/** A store with claims and a journal. */
export type JournalingStore = OwningStore & Pick<StoreGroups, 'journal'>;
/** A store with claims, records of ended runs and threads. */
export type ThreadedStore = KeepingStore & RestingStore & Pick<StoreGroups, 'threads'>;

type Body<S extends CheckpointStore> = (bench: Bench<S>) => Promise<void>;

/** Makes a case of the store contract for every store. */
export function everyStore(title: string, body: Body<CheckpointStore>, needs?: 'reopen' | 'damage'): Draft {
  return { title, body, offers: () => true, ...(needs ? { needs } : {}) };
}

/** Makes a case of the store contract for stores with `append`. */
export function appendingStore(title: string, body: Body<AppendingStore>): Draft {
  return { title, body, offers: isAppending };
}

/** Makes a case of the store contract for stores with claims. */
export function owningStore(title: string, body: Body<OwningStore>, needs?: 'reopen'): Draft {
  return { title, body, offers: isOwning, ...(needs ? { needs } : {}) };
}

/** Makes a case of the store contract for stores with a journal. */
export function journalStore(title: string, body: Body<JournalingStore>, needs?: 'reopen'): Draft {
  return { title, body, offers: (store) => store.journal !== undefined, ...(needs ? { needs } : {}) };
}

/** Makes a case of the store contract for stores that keep outcomes. */
export function keepingStore(title: string, body: Body<OutcomeStore>, needs?: 'reopen'): Draft {
  return { title, body, offers: isKeepingOutcomes, ...(needs ? { needs } : {}) };
}

/** Makes a case of the store contract for stores with claims that keep outcomes. */
export function owningAndKeepingStore(title: string, body: Body<OwningStore & OutcomeStore>): Draft {
  return { title, body, offers: (store) => isOwning(store) && isKeepingOutcomes(store) };
}

/** Makes a case of the store contract for stores with claims that know which ends are delivered. */
export function deliveryStore(title: string, body: Body<DeliveryStore & OwningStore>, needs?: 'reopen'): Draft {
  const offers = (store: CheckpointStore) => isDelivering(store) && isOwning(store);
  return { title, body, offers, ...(needs ? { needs } : {}) };
}

/** Makes a case of the store contract for stores with commands. */
export function controlStore(title: string, body: Body<ControlStore>, needs?: 'reopen'): Draft {
  return { title, body, offers: carriesCommands, ...(needs ? { needs } : {}) };
}

/** Makes a case of the store contract for stores in which runs rest. */
export function dueStore(title: string, body: Body<RestingStore>, needs?: 'reopen' | 'damage'): Draft {
  return { title, body, offers: isDue, ...(needs ? { needs } : {}) };
}

/** Makes a case of the store contract for stores that count their runs. */
export function countingStore(title: string, body: Body<RestingStore>, needs?: 'reopen' | 'damage'): Draft {
  return { title, body, offers: isDue, ...(needs ? { needs } : {}) };
}

/** Makes a case of the store contract for stores from which processes take due runs. */
export function takingStore(title: string, body: Body<RestingStore>, needs?: 'reopen' | 'damage'): Draft {
  return { title, body, offers: isDue, ...(needs ? { needs } : {}) };
}

/** Makes a case of the store contract for stores that carry signals. */
export function eventStore(title: string, body: Body<EventStore>, needs?: 'reopen'): Draft {
  return { title, body, offers: isEvents, ...(needs ? { needs } : {}) };
}

/** Makes a case of the store contract for stores that keep the records of runs that ended. */
export function historyStore(title: string, body: Body<KeepingStore>, needs?: 'reopen' | 'damage'): Draft {
  return { title, body, offers: isKeepingRecords, ...(needs ? { needs } : {}) };
}

/** Makes a case of the store contract for stores that tell that nothing has changed. */
export function markingStore(title: string, body: Body<ChangeStore & OwningStore>, needs?: 'reopen'): Draft {
  return { title, body, offers: (store) => isMarking(store) && isOwning(store), ...(needs ? { needs } : {}) };
}

/** Makes a case of the store contract for stores that keep threads. */
export function threadStore(title: string, body: Body<ThreadedStore>, needs?: 'reopen'): Draft {
  return { title, body, offers: (store) => store.threads !== undefined, ...(needs ? { needs } : {}) };
}

/** Makes a case of the store contract for stores that keep schedules. */
export function scheduleStore(
  title: string,
  body: Body<RestingStore & Pick<StoreGroups, 'schedules'>>,
  needs?: 'reopen',
): Draft {
  return { title, body, offers: (store) => store.schedules !== undefined, ...(needs ? { needs } : {}) };
}

/** Makes a case of the store contract for stores that give turns to limited calls. */
export function limitStore(
  title: string,
  body: Body<CheckpointStore & Pick<StoreGroups, 'limits'>>,
  needs?: 'reopen',
): Draft {
  return { title, body, offers: (store) => store.limits !== undefined, ...(needs ? { needs } : {}) };
}

/**
 * Makes a runnable case of the store contract from its draft: skips it if the store lacks its methods.
 * @param draft the case to run on each store that `test` creates
 */
export function toCase<S extends CheckpointStore>(draft: Draft, test: StoreUnderTest<S>): ContractCase {
  const run = async (...context: readonly unknown[]): Promise<void> => {
    const used: S[] = [await test.create()];
    try {
      const bench = benchOf(used, test);
      if (draft.offers(bench.store)) await draft.body(bench as unknown as Bench<never>);
      else skip(context[0]);
    } finally {
      for (const store of used) await test.dispose?.(store);
    }
  };
  return { title: draft.title, run };
}

function benchOf<S extends CheckpointStore>(used: S[], test: StoreUnderTest<S>): Bench<S> {
  const store = used[0] as S;
  return {
    store,
    seed: test.seed ?? Math.floor(Math.random() * 2 ** 32),
    reopen: async () => {
      const opened = await test.reopen?.(store);
      assert(opened, 'this case needs `reopen`');
      used.push(opened);
      return opened;
    },
    damage: async (runId, kind) => test.damage?.(store, runId, kind),
  };
}

function skip(context: unknown): void {
  const { skip: skipCase } = (context ?? {}) as { skip?: unknown };
  if (typeof skipCase === 'function') skipCase.call(context, 'the store does not have these methods');
}

/** For the error of a store that refuses an id which it cannot keep apart from others. @returns null */
export function refusedId(error: unknown): null {
  assert.equal((error as { code?: unknown }).code, 'INVALID_RUN_ID');
  return null;
}

/** Checks that a call is refused with an error of this code. */
export async function refuses(call: Promise<unknown>, code: string): Promise<Error> {
  let refusal: unknown;
  await assert.rejects(call, (error) => {
    refusal = error;
    assert.equal((error as { code?: unknown }).code, code, `expected code ${code}, got: ${error}`);
    return true;
  });
  return refusal as Error;
}
