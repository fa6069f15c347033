import assert from 'node:assert/strict';
import {
  carriesCommands,
  isAppending,
  isDelivering,
  isDue,
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
  EventStore,
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

/** A store that keeps outcomes. */
type KeptOutcomes = CheckpointStore & Pick<StoreGroups, 'outcomes'>;
/** A store that keeps outcomes, and which of them are delivered. */
type DeliveringStore = KeptOutcomes & Pick<StoreGroups, 'deliveries'>;
/** A store with claims and a journal. */
export type JournalingStore = OwningStore & Pick<StoreGroups, 'journal'>;
/** A store with claims, records of ended runs and threads. */
export type ThreadedStore = KeepingStore & RestingStore & Pick<StoreGroups, 'threads'>;

/** Makes a case of the store contract, for stores of one kind. */
type CaseFor<S extends CheckpointStore> = (
  title: string,
  body: (bench: Bench<S>) => Promise<void>,
  needs?: 'reopen' | 'damage',
) => Draft;

function caseFor<S extends CheckpointStore>(offers: Draft['offers']): CaseFor<S> {
  return (title, body, needs) => ({ title, body, offers, ...(needs ? { needs } : {}) });
}

/** Any store. */
export const everyStore: CaseFor<CheckpointStore> = caseFor(() => true);
/** Stores with `append`. */
export const appendingStore: CaseFor<AppendingStore> = caseFor(isAppending);
/** Stores with claims. */
export const owningStore: CaseFor<OwningStore> = caseFor(isOwning);
/** Stores with a journal. */
export const journalStore: CaseFor<JournalingStore> = caseFor((store) => store.journal !== undefined);
/** Stores that keep outcomes. */
export const keepingStore: CaseFor<KeptOutcomes> = caseFor((store) => store.outcomes !== undefined);
/** Stores with claims that keep outcomes. */
export const owningAndKeepingStore: CaseFor<OwningStore & KeptOutcomes> = caseFor(
  (store) => isOwning(store) && store.outcomes !== undefined,
);
/** Stores with claims that know which ends are delivered. */
export const deliveryStore: CaseFor<DeliveringStore & OwningStore> = caseFor(
  (store) => isDelivering(store) && isOwning(store),
);
/** Stores with commands. */
export const controlStore: CaseFor<ControlStore> = caseFor(carriesCommands);
/** Stores in which runs rest, which count them, and from which processes take those that are due. */
export const dueStore: CaseFor<RestingStore> = caseFor(isDue);
/** Stores that carry signals. */
export const eventStore: CaseFor<EventStore> = caseFor((store) => store.waits !== undefined);
/** Stores that keep the records of runs that ended. */
export const historyStore: CaseFor<KeepingStore> = caseFor(isKeepingRecords);
/** Stores that tell that nothing has changed. */
export const markingStore: CaseFor<ChangeStore & OwningStore> = caseFor((store) => isMarking(store) && isOwning(store));
/** Stores that keep threads. */
export const threadStore: CaseFor<ThreadedStore> = caseFor((store) => store.threads !== undefined);
/** Stores that keep schedules. */
export const scheduleStore: CaseFor<RestingStore & Pick<StoreGroups, 'schedules'>> = caseFor(
  (store) => store.schedules !== undefined,
);
/** Stores that give turns to limited calls. */
export const limitStore: CaseFor<CheckpointStore & Pick<StoreGroups, 'limits'>> = caseFor(
  (store) => store.limits !== undefined,
);

/** The clause of the contract that a title ends with is for who works on Pawl: its pages are not in the package. */
const CLAUSE = / \([a-z-]+ [^()]+\)$/;

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
  return { title: draft.title.replace(CLAUSE, ''), run };
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

/** The orders of two calls that are asked for at once: which is first, and how many turns of promises lie between them. */
export const orders: readonly { readonly isTurned: boolean; readonly gap: number }[] = [0, 1, 2, 3].flatMap((gap) => [
  { isTurned: false, gap },
  { isTurned: true, gap },
]);

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
