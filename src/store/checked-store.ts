import type { RunCheckpoint } from '../record/checkpoint.ts';
import type { InterruptedRun } from '../record/interrupted.ts';
import { parseCheckpoint } from '../record/parse.ts';
import type { Clock } from '../values/clock.ts';
import { withDeadline } from '../values/deadline.ts';
import { readProperty } from '../values/error-data.ts';
import { CheckpointCorruptError, StoreUnavailableError } from '../values/errors.ts';
import { isAmount, isCount, isObject } from '../values/json.ts';
import { kindOf } from '../values/known-options.ts';
import { letGo } from '../values/thenable.ts';
import type { RunCounts } from './counting/port.ts';
import type { DueList, TakenRuns } from './due-port.ts';
import type { JournalPage, RecordPart } from './journal-port.ts';
import type { CheckpointStore } from './port.ts';
import { type MethodName, type StoreMethod, wrapStore } from './read-only.ts';

const checked = new WeakMap<CheckpointStore, CheckpointStore>();

/**
 * Wraps a host's store as the runtime uses it: its errors get codes, its lists are checked. Errors without a code, and
 * those of the system, become `StoreUnavailableError` with the error as their cause; each entry of its list has a run id.
 * It has the methods of the store, and no others.
 */
export function checkedStore<S extends CheckpointStore>(store: S): S {
  const known = checked.get(store);
  if (known) return known as S;
  const guarded = wrapStore(store, guardedMethod);
  checked.set(store, guarded);
  checked.set(guarded, guarded);
  return guarded;
}

interface Limit {
  /** The longest time that one call may take, ms. */
  readonly ms: number;
  readonly clock: Clock;
}

/**
 * Wraps a store so that each call ends: after `ms` it rejects with `PortTimeoutError`, which names the call (`store.load`).
 * It has the methods that the store has, and no others.
 */
export function boundedStore<S extends CheckpointStore>(store: S, { ms, clock }: Limit): S {
  return wrapStore(store, (name, call) => {
    const limit = { ms, clock, what: `store.${name}` };
    return async (...args) => withDeadline(Promise.resolve(call(...args)), limit);
  });
}

function guardedMethod(name: MethodName, call: StoreMethod): StoreMethod {
  const what = `store.${name}`;
  const check = checkedAnswers[name];
  const fail = (error: unknown): never => {
    throw storeFailure(what, error);
  };
  return (...args) => {
    try {
      const answer = Promise.resolve(call(...args));
      return (check ? answer.then((value) => check(value, String(args[0]))) : answer).catch(fail);
    } catch (error) {
      return Promise.reject(storeFailure(what, error));
    }
  };
}

/**
 * Returns a store's error with a code: its own code, or else STORE_UNAVAILABLE. Codes of the system (`ECONNREFUSED`) name a
 * failure below the store, and stay in the cause.
 * @param what names the call, for example `store.save`
 */
export function storeFailure(what: string, error: unknown): unknown {
  const code = readProperty(error, 'code');
  const isOfSystem = readProperty(error, 'errno') !== undefined;
  if (typeof code === 'string' && code !== '' && !isOfSystem) return error;
  const message = readProperty(error, 'message');
  const why = typeof message === 'string' && message !== '' ? message : `it threw a ${typeof error}, not an Error`;
  letGo(error);
  return new StoreUnavailableError(`${what} failed: ${why.slice(0, MAX_WHY)}`, { cause: error });
}

const MAX_WHY = 1_000;

/** The values that a method may resolve to. The answer of any other method is not checked. */
const checkedAnswers: { readonly [Name in MethodName]?: (answer: unknown, runId: string) => unknown } = {
  listInterrupted: checkedList,
  load: checkedRecord,
  claim: checkedClaim,
  'commands.inbox': checkedInbox,
  'outcomes.find': checkedOutcome,
  'deliveries.take': checkedUndelivered,
  'due.leave': checkedLeave,
  'due.list': checkedDue,
  'due.countRuns': checkedCounts,
  'due.take': checkedTaken,
  'due.heldUntil': checkedHeldUntil,
  'due.deploymentOf': checkedDeployment,
  'history.list': checkedEnded,
  'journal.read': checkedEvents,
  'journal.loadPart': checkedPart,
};

/**
 * Checks the record that a host's store loaded.
 * @throws {STORE_UNAVAILABLE} for a value that is not a record @throws {CHECKPOINT_CORRUPT} for a damaged one, or that
 *   of another run
 */
function checkedRecord(answer: unknown, runId: string): RunCheckpoint | null {
  if (answer === null || answer === undefined) return null;
  if (!isObject(answer) || !isObject(answer.meta)) throw wrongAnswer('load', answer, 'a record or null');
  const record = parseCheckpoint(answer);
  if (record.meta.runId === runId) return record;
  throw new CheckpointCorruptError(`store.load returned the record of another run for ${JSON.stringify(runId)}`);
}

function checkedPart(answer: unknown, runId: string): RecordPart | null {
  if (answer === null || answer === undefined) return null;
  if (!isObject(answer) || !isAmount(answer.messageCount))
    throw wrongAnswer('journal.loadPart', answer, '{ record, messageCount }');
  const record = checkedRecord(answer.record, runId);
  return record && { record, messageCount: answer.messageCount as number };
}

function checkedClaim(answer: unknown): unknown {
  if (answer === null || answer === undefined) return null;
  if (isObject(answer) && Number.isInteger(answer.epoch) && Number.isInteger(answer.attempts)) return answer;
  throw wrongAnswer('claim', answer, 'a claim with its epoch and attempts, or null');
}

function checkedOutcome(answer: unknown, runId: string): unknown {
  if (answer === null || answer === undefined) return null;
  if (!isObject(answer)) throw wrongAnswer('outcomes.find', answer, 'an outcome or null');
  if (answer.runId === runId) return answer;
  throw new CheckpointCorruptError(
    `store.outcomes.find returned the outcome of another run for ${JSON.stringify(runId)}`,
  );
}

function checkedUndelivered(answer: unknown): unknown {
  const isEnd = (each: unknown) => isObject(each) && isId(each.runId) && isObject(each.outcome);
  if (Array.isArray(answer) && answer.every(isEnd)) return answer;
  throw wrongAnswer('deliveries.take', answer, 'an array of { runId, agentId, outcome }');
}

function checkedInbox(answer: unknown): unknown {
  const isSent = (each: unknown) => isObject(each) && typeof each.runId === 'string' && isObject(each.command);
  if (Array.isArray(answer) && answer.every(isSent)) return answer;
  throw wrongAnswer('commands.inbox', answer, 'an array of { runId, command }');
}

/** Any other value could let a run rest with an unread command. */
function checkedLeave(answer: unknown): boolean {
  if (typeof answer === 'boolean') return answer;
  throw wrongAnswer('due.leave', answer, 'true or false');
}

function checkedDue(answer: unknown): DueList {
  const isDueRun = (each: unknown) => isObject(each) && isId(each.runId) && isAmount(each.dueAt);
  if (isObject(answer) && isAmount(answer.now) && Array.isArray(answer.runs) && answer.runs.every(isDueRun)) {
    return answer as never;
  }
  throw wrongAnswer('due.list', answer, '{ now, runs: { runId, dueAt, attempts }[], nextAt? }');
}

function checkedCounts(answer: unknown): RunCounts {
  const isCounts = (each: unknown) => isObject(each) && Object.values(each).every(isAmount);
  if (isObject(answer)) {
    const { now, live, due, parked, waiting, dueSince = 0 } = answer;
    if ([now, live, due, parked, dueSince].every(isAmount) && isCounts(waiting)) return answer as never;
  }
  throw wrongAnswer('due.countRuns', answer, '{ now, live, due, dueSince?, waiting: { [kind]: number }, parked }');
}

/** A claim that is not one would be a run that no process works on, or two do. */
function checkedTaken(answer: unknown): TakenRuns {
  const isTaken = (each: unknown) =>
    isObject(each) &&
    isId(each.runId) &&
    Number.isInteger(each.epoch) &&
    Number.isInteger(each.attempts) &&
    isObject(each.run) &&
    each.run.runId === each.runId;
  if (isObject(answer) && isAmount(answer.now) && Array.isArray(answer.claims) && answer.claims.every(isTaken)) {
    return answer as never;
  }
  throw wrongAnswer('due.take', answer, '{ now, claims: { runId, owner, epoch, attempts, run }[], nextAt? }');
}

function checkedHeldUntil(answer: unknown): number | null {
  if (answer === null || answer === undefined) return null;
  if (isAmount(answer)) return answer as number;
  throw wrongAnswer('due.heldUntil', answer, 'a time in ms, or null');
}

function checkedDeployment(answer: unknown): number | null {
  if (answer === null || answer === undefined) return null;
  if (isCount(answer)) return answer as number;
  throw wrongAnswer('due.deploymentOf', answer, 'a whole number, or null');
}

function checkedEnded(answer: unknown): unknown {
  const isKept = (each: unknown) => isObject(each) && isId(each.runId) && isAmount(each.endedAt);
  if (Array.isArray(answer) && answer.every(isKept)) return answer;
  throw wrongAnswer('history.list', answer, 'an array of { runId, status, endedAt, ... }');
}

function checkedEvents(answer: unknown): JournalPage | null {
  if (answer === null || answer === undefined) return null;
  const isEntry = (each: unknown) => isObject(each) && isAmount(each.place) && isObject(each.event);
  const isPage = isObject(answer) && isAmount(answer.next) && Array.isArray(answer.entries);
  if (isPage && (answer.entries as readonly unknown[]).every(isEntry)) return answer as never;
  throw wrongAnswer('journal.read', answer, '{ entries: { place, event, keep }[], next }, or null');
}

function wrongAnswer(method: MethodName, answer: unknown, needed: string): StoreUnavailableError {
  letGo(answer);
  return new StoreUnavailableError(`store.${method} returned ${kindOf(answer)}; it must resolve to ${needed}`);
}

function checkedList(answer: unknown): readonly InterruptedRun[] {
  if (Array.isArray(answer)) return answer.map(checkedEntry);
  throw wrongAnswer('listInterrupted', answer, 'an array');
}

/** An entry without a run id gets the one of its meta. An unusable entry has a reason, and hides no others. */
function checkedEntry(entry: unknown, at: number): InterruptedRun {
  const meta = readProperty(entry, 'meta');
  const found = [readProperty(entry, 'runId'), readProperty(meta, 'runId')].find(isId);
  const unusable = (problem: string): InterruptedRun => {
    const reason = `STORE_UNAVAILABLE: store.listInterrupted returned an entry ${problem} (number ${at} of its page)`;
    return { runId: found ?? '', status: 'quarantined', reason };
  };
  if (found === undefined) return unusable('without a runId, and without a meta.runId');
  const isReadable =
    readProperty(entry, 'status') === 'quarantined' || typeof readProperty(meta, 'agentId') === 'string';
  if (!isReadable) return unusable('without a meta.agentId');
  const run = entry as InterruptedRun;
  return run.runId === found ? run : { ...run, runId: found };
}

const isId = (value: unknown): value is string => typeof value === 'string' && value !== '';
