import type { RunCheckpoint } from '../../../record/checkpoint.ts';
import type { KeptRun } from '../../../record/kept-run.ts';
import { checkRunId } from '../../../run/identity.ts';
import { type Labels, labelsOf } from '../../../run/request.ts';
import { isKeepingRecords } from '../../../store/capabilities.ts';
import type { KeepingStore, ListEndedOptions } from '../../../store/history-port.ts';
import { UnsupportedError } from '../../../values/errors.ts';
import { checkKeys, type KnownKeys, kindOf } from '../../../values/known-options.ts';
import { enterStored, type Message } from '../../../values/message.ts';
import { Redactor } from '../../../values/redact.ts';
import type { ExecutorServices } from '../../run/active-run.ts';
import { storeOfRun } from '../../run/record/stored-run.ts';

/** The options of `executor.history()`. */
export interface HistoryFilter extends Omit<ListEndedOptions, 'limit'> {
  /** Most entries of the answer; default 1,000. A shorter answer is the last page. */
  readonly limit?: number | undefined;
  /** Only runs of this status, or of one of these. */
  readonly status?: KeptRun['status'] | readonly KeptRun['status'][] | undefined;
  /** Only runs that have all of these. */
  readonly labels?: Labels | undefined;
  /** Only runs that ended at this time or later, wall clock, ms. */
  readonly since?: number | undefined;
  /** Only runs that ended before this time, wall clock, ms. */
  readonly until?: number | undefined;
}

/** Which messages of a record are read. */
export interface MessagesOptions {
  /** How many messages come before the first one of the answer; default 0. */
  readonly after?: number | undefined;
  /** Most messages of the answer; default all. */
  readonly limit?: number | undefined;
}

const filterKeys: KnownKeys<HistoryFilter> = {
  ...{ limit: true, after: true, agentId: true, callerId: true },
  ...{ status: true, labels: true, since: true, until: true },
};
const messagesKeys: KnownKeys<MessagesOptions> = { after: true, limit: true };
const USUAL_LIMIT = 1_000;
/** Entries that are read at once where not all of them fit. */
const READ_AT_ONCE = 500;
/** No usual id comes after it. */
const LAST_ID = '\u{10ffff}';
const statuses: readonly KeptRun['status'][] = ['ok', 'error', 'timeout', 'cancelled', 'killed', 'quarantined'];

/**
 * Lists one page of the runs that ended and whose records are kept: the newest end first. Agent, caller and times are found by an
 * index; for status and labels the entries in between are read.
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
  const isWanted = wantedBy(options);
  const [since, until] = [timeOf('since', options.since, 0), timeOf('until', options.until, Number.POSITIVE_INFINITY)];
  const store = historyStoreOf(services);
  // The list begins behind all runs that ended at this time.
  let from =
    after && after.endedAt < until ? after : Number.isFinite(until) ? { endedAt: until, runId: LAST_ID } : after;
  const most = isWanted ? READ_AT_ONCE : limit;
  const found: KeptRun[] = [];
  for (;;) {
    const page = await store.history.list({ limit: most, after: from, agentId, callerId });
    for (const run of page) {
      if (run.endedAt < since || found.length === limit) return found;
      if (run.endedAt < until && (!isWanted || isWanted(run))) found.push(run);
    }
    from = page.at(-1);
    if (page.length < most || !from || found.length === limit) return found;
  }
}

/** Returns whether a run has the status and the labels that are asked for; undefined = none are. @throws {TypeError} */
function wantedBy({ status, labels }: HistoryFilter): ((run: KeptRun) => boolean) | undefined {
  const wanted: readonly unknown[] = status === undefined ? statuses : Array.isArray(status) ? status : [status];
  const unknown = wanted.find((each) => !statuses.includes(each as KeptRun['status']));
  if (wanted.length === 0 || unknown !== undefined) {
    const got = wanted.length === 0 ? 'an empty list' : JSON.stringify(String(unknown).slice(0, 100));
    throw new TypeError(`executor.history: status must be one or more of ${statuses.join(', ')}, not ${got}`);
  }
  const asked = Object.entries(labels === undefined ? {} : labelsOf(labels, 'executor.history: labels'));
  if (status === undefined && asked.length === 0) return undefined;
  return (run) => {
    const own = ('labels' in run && run.labels) || {};
    return wanted.includes(run.status) && asked.every(([name, text]) => Object.hasOwn(own, name) && own[name] === text);
  };
}

function timeOf(name: string, time: unknown, usual: number): number {
  if (time === undefined) return usual;
  if (typeof time === 'number' && !Number.isNaN(time)) return time;
  throw new TypeError(`executor.history: ${name} must be a time in ms, not ${kindOf(time)}`);
}

/**
 * Reads the messages of a run from its record, also of one that ended and is kept; null if there is no record.
 * @throws {TypeError} @throws {NOT_DURABLE} @throws the store's own error if the record cannot be read
 */
export async function messagesOfRun(
  services: ExecutorServices,
  runId: string,
  options: MessagesOptions,
): Promise<readonly Message[] | null> {
  checkKeys(options, messagesKeys, { of: 'executor.messages' });
  const { after = 0, limit = Number.POSITIVE_INFINITY } = options;
  checkCount('executor.messages: after', after, 0);
  if (limit !== Number.POSITIVE_INFINITY) checkCount('executor.messages: limit', limit, 1);
  const record = await storeOfRun(services).load(checkRunId(runId), { ended: true });
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
  if (!thread || !store?.threads) return earlier;
  const turns = await store.threads.history({ callerId: meta.callerId, id: thread.id }, thread.upTo);
  if (!redact) return turns;
  const by = new Redactor(redact, 'record');
  return turns.map((message) => by.message(message));
}

/** Returns the store of an executor as one that keeps records. @throws {UNSUPPORTED} @throws {NOT_DURABLE} */
export function historyStoreOf(services: ExecutorServices): KeepingStore {
  const store = storeOfRun(services);
  if (isKeepingRecords(store)) return store;
  throw new UnsupportedError('this store keeps no records of ended runs: it has no group history');
}

function checkCount(name: string, count: unknown, least: number): void {
  if (Number.isInteger(count) && (count as number) >= least) return;
  throw new TypeError(`${name} must be a whole number of ${least} or more, not ${String(count)}`);
}
