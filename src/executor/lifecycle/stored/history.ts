import type { RunCheckpoint } from '../../../record/checkpoint.ts';
import type { KeptRun } from '../../../record/kept-run.ts';
import { checkRunId } from '../../../run/identity.ts';
import { isKeepingRecords, isThreads } from '../../../store/capabilities.ts';
import type { HistoryStore, ListEndedOptions } from '../../../store/port.ts';
import { UnsupportedError } from '../../../values/errors.ts';
import { checkKeys, type KnownKeys, kindOf } from '../../../values/known-options.ts';
import { enterStored, type Message } from '../../../values/message.ts';
import { Redactor } from '../../../values/redact.ts';
import type { ExecutorServices } from '../../run/active-run.ts';
import { storeOf } from '../../run/record/stored-run.ts';

/** The options of `executor.history()`. */
export interface HistoryFilter extends Omit<ListEndedOptions, 'limit'> {
  /** Most entries of the answer; default 1,000. A shorter answer is the last page. */
  readonly limit?: number | undefined;
}

/** Which messages of a record are read. */
export interface MessagesOptions {
  /** How many messages come before the first one of the answer; default 0. */
  readonly after?: number | undefined;
  /** Most messages of the answer; default all. */
  readonly limit?: number | undefined;
}

const filterKeys: KnownKeys<HistoryFilter> = { limit: true, after: true, agentId: true, callerId: true };
const messagesKeys: KnownKeys<MessagesOptions> = { after: true, limit: true };
const USUAL_LIMIT = 1_000;

/**
 * Lists one page of the runs that ended and whose records are kept: the newest end first.
 * @throws {TypeError} for options that cannot be @throws {UNSUPPORTED} @throws {NOT_DURABLE} @throws the store's own error
 */
export async function history(services: ExecutorServices, options: HistoryFilter): Promise<readonly KeptRun[]> {
  checkKeys(options, filterKeys, { of: 'executor.history' });
  const { limit = USUAL_LIMIT, after, agentId, callerId } = options;
  checkCount('executor.history: limit', limit, 1);
  for (const [name, id] of Object.entries({ agentId, callerId })) {
    if (id !== undefined && typeof id !== 'string')
      throw new TypeError(`executor.history: ${name} must be a string, not ${kindOf(id)}`);
  }
  if (after !== undefined && !(typeof after?.runId === 'string' && Number.isFinite(after.endedAt)))
    throw new TypeError('executor.history: after must be the last entry of a page, or its { endedAt, runId }');
  return historyStore(services).listEnded({ limit, after, agentId, callerId });
}

/**
 * Reads the messages of a run from its record, also of one that ended and is kept; null if there is no record.
 * @throws {TypeError} @throws {NOT_DURABLE} @throws the store's own error if the record cannot be read
 */
export async function messagesOf(
  services: ExecutorServices,
  runId: string,
  options: MessagesOptions,
): Promise<readonly Message[] | null> {
  checkKeys(options, messagesKeys, { of: 'executor.messages' });
  const { after = 0, limit = Number.POSITIVE_INFINITY } = options;
  checkCount('executor.messages: after', after, 0);
  if (limit !== Number.POSITIVE_INFINITY) checkCount('executor.messages: limit', limit, 1);
  const record = await storeOf(services).load(checkRunId(runId), { ended: true });
  return record?.messages.slice(after, after + limit).map(enterStored) ?? null;
}

/**
 * Returns the messages before those of a record: the earlier conversation, or the earlier turns of its thread, which are in the records
 * of their runs. They are redacted.
 */
export async function earlierOf(
  services: ExecutorServices,
  { meta, thread, earlier = [] }: RunCheckpoint,
): Promise<readonly Message[]> {
  const { store, redact } = services.config;
  if (!thread || !store || !isThreads(store)) return earlier;
  const turns = await store.historyOf({ callerId: meta.callerId, id: thread.id }, thread.upTo);
  if (!redact) return turns;
  const by = new Redactor(redact, 'record');
  return turns.map((message) => by.message(message));
}

/** Returns the store of an executor as one that keeps records. @throws {UNSUPPORTED} @throws {NOT_DURABLE} */
export function historyStore(services: ExecutorServices): HistoryStore {
  const store = storeOf(services);
  if (isKeepingRecords(store)) return store;
  throw new UnsupportedError('this store keeps no records of ended runs: it has no end, listEnded and erase');
}

function checkCount(name: string, count: unknown, least: number): void {
  if (Number.isInteger(count) && (count as number) >= least) return;
  throw new TypeError(`${name} must be a whole number of ${least} or more, not ${String(count)}`);
}
