import type { RunCheckpoint } from '../../../record/checkpoint.ts';
import { headOf } from '../../../record/delta.ts';
import { isRewritten } from '../../../record/upcast.ts';
import type { RunEventBody } from '../../../run/events/body.ts';
import { firstPlace, type JournalEntry, type JournalWrite } from '../../../run/journal/entry.ts';
import { isAppending, isOwning } from '../../../store/capabilities.ts';
import type { CheckpointStore, Claim, ClaimOptions, OwningStore, WriteOptions } from '../../../store/port.ts';
import { hasCode } from '../../../values/error-data.ts';
import { NotDurableError, RunNotFoundError, RunOwnedElsewhereError } from '../../../values/errors.ts';
import { Redactor } from '../../../values/redact.ts';
import { redactedEvent } from '../../host/redaction.ts';
import type { ExecutorServices } from '../active-run.ts';

/** A stored run without an owner, claimed for a moment. */
export interface StoredRun {
  readonly record: RunCheckpoint;
  readonly store: CheckpointStore;
  readonly claim: Claim | undefined;
  /** Sets the count of attempts, also if the write of it is not answered. */
  counts(attempts: number): void;
}

/** Returns the store of an executor. @throws {NOT_DURABLE} when it has none */
export function storeOfRun({ config }: ExecutorServices): CheckpointStore {
  if (config.store) return config.store;
  throw new NotDurableError('this executor has no store: it knows only its own runs');
}

/** Returns the options of each claim of an executor: the number of its deployment. */
export function claimOptionsOf({ config: { deployment } }: ExecutorServices): ClaimOptions {
  return deployment === undefined ? {} : { deployment };
}

/** Redacts a person's text to a run, or reason, for the store. */
export function recordedText({ config }: ExecutorServices, text: string): string {
  return config.redact ? new Redactor(config.redact, 'record').text(text) : text;
}

/** Waits until no work of this executor touches a stored run. Never rejects, and ends: all such work is bounded. */
export async function untilUntouched(services: ExecutorServices, runId: string): Promise<void> {
  const known = services.storedWork;
  for (let work = known.get(runId); work; work = known.get(runId)) await work;
}

/**
 * Claims a stored run, loads its record, does the work, and releases it. If two calls need the same run, the second waits:
 * all claims of one executor have the same owner, so the second would take the run from the first.
 * @param of the id of the run; `ended`: it may have ended
 * @throws {RUN_OWNED_ELSEWHERE} while another owner works on it, if one takes it meanwhile, or if a newer deployment has
 *   worked on it
 * @throws {RUN_NOT_FOUND} if the store has no record of it
 */
export async function withStoredRun<T>(
  services: ExecutorServices,
  of: string | { readonly ended: string },
  work: (run: StoredRun) => Promise<T>,
): Promise<T> {
  const known = services.storedWork;
  const runId = typeof of === 'string' ? of : of.ended;
  for (let before = known.get(runId); before; before = known.get(runId)) await before;
  const over = Promise.withResolvers<void>();
  known.set(runId, over.promise);
  try {
    return await holdRun(services, of, work);
  } catch (error) {
    if (hasCode(error, 'NEWER_DEPLOYMENT'))
      throw new RunOwnedElsewhereError(`run ${runId} is left to a newer deployment`, { cause: error });
    if (!hasCode(error, 'LEASE_LOST')) throw error;
    throw new RunOwnedElsewhereError(`run ${runId} was taken up by another owner meanwhile`, { cause: error });
  } finally {
    known.delete(runId);
    over.resolve();
  }
}

interface ClaimWish {
  readonly runId: string;
  readonly owner: string;
  readonly ttlMs: number;
  readonly options: ClaimOptions;
}

/** A quarantined record that is readable again (it was restored, the key is back) is freed by a save of the whole record. */
async function claimReadable(store: OwningStore, { runId, owner, ttlMs, options }: ClaimWish): Promise<Claim | null> {
  try {
    return await store.claim(runId, owner, ttlMs, options);
  } catch (error) {
    if (!hasCode(error, 'CHECKPOINT_CORRUPT')) throw error;
    const record = await store.load(runId).catch(() => null);
    if (!record) throw error;
    await store.save(record);
    return store.claim(runId, owner, ttlMs, options);
  }
}

async function holdRun<T>(
  services: ExecutorServices,
  of: string | { readonly ended: string },
  work: (run: StoredRun) => Promise<T>,
): Promise<T> {
  const { defaults } = services.config;
  const { runId, ...options } = typeof of === 'string' ? { runId: of } : { runId: of.ended, ended: true };
  const store = storeOfRun(services);
  if (services.registry.live(runId)) throw new RunOwnedElsewhereError(`run ${runId} is live in this process`);
  const claim = isOwning(store)
    ? await claimReadable(store, {
        runId,
        owner: services.owner,
        ttlMs: defaults.leaseMs,
        options: claimOptionsOf(services),
      })
    : undefined;
  if (claim === null) throw new RunOwnedElsewhereError(`run ${runId} is being worked on by another process`);
  // The claim counted a start that did not happen.
  const before = claim && Math.max(0, claim.attempts - 1);
  let left = before;
  let isDone = false;
  try {
    const record = await store.load(runId, options);
    if (!record) throw new RunNotFoundError(`run ${runId} has ended, or never began`);
    const read = { ...record, attempts: before ?? Math.max(0, record.attempts) };
    const counts = (attempts: number) => {
      left = attempts;
    };
    const answer = await work({ record: read, store, claim, counts });
    isDone = true;
    return answer;
  } finally {
    // A claim that is not released expires. The attempts that `work` has written stay.
    const options = isDone ? {} : { attempts: left };
    if (claim && isOwning(store)) await store.release(claim, options).catch(() => {});
  }
}

/**
 * Saves changed head fields of a claimed record, and nothing else.
 * @param events become part of the journal of its run
 */
export function rewriteHead(
  store: CheckpointStore,
  record: RunCheckpoint,
  { claim, events }: Pick<WriteOptions, 'claim' | 'events'> = {},
): Promise<void> {
  const options = { ...(claim ? { claim } : {}), ...(events ? { events } : {}) };
  const revision = (record.revision ?? 0) + 1;
  if (!isAppending(store) || isRewritten(record)) return store.save({ ...record, revision }, options);
  const head = { ...headOf(record), revision };
  return store.append(
    { runId: record.meta.runId, revision, from: record.messages.length, messages: [], head },
    options,
  );
}

/** Returns an event as an entry of the journal of a run that is not live; undefined without a journal. */
export function journalWrite(
  { config: { journaling, clock, redact } }: ExecutorServices,
  { record: { meta, seq = 0 }, claim }: Pick<StoredRun, 'record' | 'claim'>,
  event: RunEventBody,
): JournalWrite | undefined {
  if (!journaling || !claim) return undefined;
  const place = firstPlace(seq, claim.epoch) + 1;
  const body = redact ? redactedEvent(event, new Redactor(redact, 'event')) : event;
  const entry: JournalEntry = {
    place,
    keep: 'kept',
    event: { ...body, runId: meta.runId, seq: place, at: clock.now() },
  };
  return { entries: [entry] };
}
