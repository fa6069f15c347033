import type { RunCheckpoint } from '../../../record/checkpoint.ts';
import { toldAttempt } from '../../../run/attempt.ts';
import { isPerson } from '../../../run/command.ts';
import type { RunEventBody } from '../../../run/events/body.ts';
import { recoverOpenStep } from '../../../run/open-step.ts';
import { forgetModelWaits } from '../../../run/waits/model-waits.ts';
import type { Person } from '../../../run/waits/wait.ts';
import { hasCode } from '../../../values/error-data.ts';
import { RunNotFoundError } from '../../../values/errors.ts';
import { checkKeys } from '../../../values/known-options.ts';
import { Redactor } from '../../../values/redact.ts';
import { redactedEvent } from '../../host/redaction.ts';
import type { ExecutorServices } from '../../run/active-run.ts';
import { journalWrite, recordedText, rewriteHead, withStoredRun } from '../../run/record/stored-run.ts';
import { observedRecord } from '../../run/run-info.ts';
import { ObserverList } from '../../services/observer-list.ts';

/** Who parks or unparks a run. */
export interface ParkOptions {
  /** The person; the record of a parked run, and its journal, have it. */
  readonly by?: Person | undefined;
}

/**
 * Parks a stored run for `control(id).park`: no process starts it until it is unparked.
 * @throws {RUN_OWNED_ELSEWHERE} while an owner works on it: cancel it, or shut its process down, first
 * @throws {RUN_NOT_FOUND} if the store has no record of it @throws {TypeError} for a `by` that is no person
 */
export async function park(
  services: ExecutorServices,
  runId: string,
  { reason, ...options }: ParkOptions & { readonly reason: string },
): Promise<void> {
  const by = personIn(options, 'park');
  const parked = { code: 'PARKED', reason: recordedText(services, reason), ...by };
  const { tracing, notices } = services.config;
  const event = { type: 'run.parked', ...parked } as const;
  const record = await changeRecord(services, runId, {
    change: (record) => ({
      ...record,
      ...(tracing && !tracing.isIdle() ? toldAttempt(record, parked.code) : {}),
      parked,
    }),
    event,
  });
  const { meta, iteration } = record;
  notices.tellParked({ runId, agentId: meta.agentId, iteration }, parked);
  tellObservers(services, record, event);
  await services.passParked(runId);
}

/** Tells the observers of all runs of a run that no process works on: none may start it for days. */
function tellObservers(services: ExecutorServices, record: RunCheckpoint, body: RunEventBody): void {
  const { observers, clock, redact } = services.config;
  const shown = redact ? redactedEvent(body, new Redactor(redact, 'event')) : body;
  const event = { ...shown, runId: record.meta.runId, seq: (record.seq ?? 0) + 1, at: clock.now() };
  new ObserverList(observers).pass(event, observedRecord(services, record));
}

/**
 * Unparks a stored run for `control(id).unpark`, with all of its attempts. If it was parked because the outcome of a `once`
 * call is unknown, a person has checked it now: the model reads that it is unknown, and the call stays as it is. A
 * run whose model was away asks it again at once.
 * @throws the errors of `park`
 */
export async function unpark(services: ExecutorServices, runId: string, options: ParkOptions): Promise<void> {
  const by = personIn(options, 'unpark');
  const changing: Changing = {
    change: ({ parked, ...record }) => {
      const seen = parked?.code === 'OUTCOME_UNKNOWN' ? record.openStep : undefined;
      const { setup: _, ...tried } = forgetModelWaits(record);
      services.paused.retry(record.meta.agentId);
      return { ...tried, attempts: 0, ...(seen ? { openStep: recoverOpenStep(seen) } : {}) };
    },
    event: { type: 'run.unparked', ...by },
  };
  await changeRecord(services, runId, changing).catch(async (error: unknown) => {
    throw (hasCode(error, 'RUN_NOT_FOUND') && (await readEndedError(services, runId))) || error;
  });
  services.config.hints.tell(runId);
}

/** Returns the error that says how a run has ended; undefined: the store does not know. */
async function readEndedError({ config: { store } }: ExecutorServices, runId: string): Promise<Error | undefined> {
  const record = await store?.load(runId, { ended: true, messages: false }).catch(() => null);
  if (!record?.outcome) return undefined;
  const { status, error } = record.outcome;
  const how = `run ${runId} has ended with status ${status}${error ? ` (${error.code}: ${error.message})` : ''}`;
  return new RunNotFoundError(
    record.thread
      ? `${how}: it cannot continue; send its message again under another id`
      : `${how}: it cannot continue`,
  );
}

/** Reads the person of a call. @throws {TypeError} */
export function personIn(options: ParkOptions, of: string): { readonly by?: Person } {
  checkKeys(options, { by: true }, { of });
  const { by } = options;
  if (by === undefined) return {};
  if (!isPerson(by)) throw new TypeError(`${of}: by must be { id, name? }`);
  return { by: { id: by.id, ...(by.name === undefined ? {} : { name: by.name }) } };
}

interface Changing {
  readonly change: (record: RunCheckpoint) => RunCheckpoint;
  /** What the journal of the run says of it. */
  readonly event: RunEventBody;
}

/** Changes the record of a run. @returns the record before the change */
function changeRecord(services: ExecutorServices, runId: string, { change, event }: Changing): Promise<RunCheckpoint> {
  return withStoredRun(services, runId, async (run) => {
    const { record, store, claim, counts } = run;
    const changed = change(record);
    counts(changed.attempts);
    await rewriteHead(store, changed, { claim, events: journalWrite(services, run, event) });
    return record;
  });
}
