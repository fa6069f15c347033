import type { RunCheckpoint } from '../../../record/checkpoint.ts';
import { fingerprintOfRecord } from '../../../record/identify.ts';
import { ownIdentityOf } from '../../../run/field-rows.ts';
import { CHILD_MARK, isStoredFingerprint, storedFingerprintOf } from '../../../run/identity.ts';
import type { ParentCall, RunRequest } from '../../../run/request.ts';
import type { RunOutcome } from '../../../run/result.ts';
import { RunIdConflictError } from '../../../values/errors.ts';
import { type Redaction, Redactor } from '../../../values/redact.ts';
import type { ActiveRun } from '../active-run.ts';

/*
 * A run id alone is not a credential. A start meets a run of its id only if it repeats the request of that run. A child is
 * found by the call that began it. A recovered or restored run has only its record: then nothing is compared.
 */

/** The parts of a start that are compared. */
export interface Asker {
  readonly request: RunRequest;
  readonly agentId: string;
  /** The id was made for this start: no existing run can be the requested one. */
  readonly isNewId: boolean;
  readonly redact: Redaction | undefined;
}

/** Returns the request of a starting run, for the comparison with the stored or live run of its id. */
export function askerOf({ seed, agent, services }: ActiveRun): Asker {
  return { request: seed.request, agentId: agent.id, isNewId: seed.isNewId, redact: services.config.redact };
}

/** Returns whether a start is compared with the run of its id: it has a fingerprint, or is a child. */
export function isComparing({ request }: Asker): boolean {
  return request.parent !== undefined || request.fingerprint !== undefined;
}

/** Returns whether a stored record belongs to the same request as a start. @param record with its fingerprint */
export function isAskedRecord(asker: Asker, { fingerprint, parent }: RunCheckpoint): boolean {
  return asker.request.parent ? isSameCall(asker.request.parent, parent) : isSameRequest(asker, fingerprint);
}

/** Returns whether a kept outcome belongs to the same request as a start. One without a fingerprint cannot be compared. */
export function isAskedOutcome(asker: Asker, { fingerprint }: RunOutcome): boolean {
  const { parent, runId } = asker.request;
  if (parent) return runId.startsWith(CHILD_MARK) || fingerprint === undefined;
  return isSameRequest(asker, fingerprint);
}

/** Returns whether the live run of this id belongs to the same request as a start. */
export function isAskedRun(asker: Asker, { life, progress, seed }: ActiveRun): boolean {
  // Before `resolving` is over the run is known by its request, afterwards by its record.
  const { fingerprint, parent } = life.hasBegun && progress ? progress : seed.request;
  return asker.request.parent ? isSameCall(asker.request.parent, parent) : isSameRequest(asker, fingerprint);
}

function isSameCall(asked: ParentCall, stored: ParentCall | undefined): boolean {
  return stored?.runId === asked.runId && stored.callId === asked.callId;
}

function isSameRequest(asker: Asker, stored: string | undefined): boolean {
  if (asker.isNewId) return false;
  const { fingerprint } = asker.request;
  if (fingerprint === undefined || fingerprint === stored) return true;
  return stored !== undefined && isStoredFingerprint(stored) && storedForms(asker).includes(stored);
}

/**
 * The fingerprints that a record of this request would have if it was stored without one: of the request as it is, and
 * redacted.
 */
function storedForms({ request, agentId, redact }: Asker): readonly string[] {
  const { prompt, inputs, earlier = [] } = request;
  const plain = storedFingerprintOf({ ...request, agentId });
  if (!redact) return [plain];
  const redactor = new Redactor(redact, 'record');
  const redacted = {
    prompt: redactor.text(prompt),
    inputs: redactor.json(inputs),
    earlier: earlier.map((message) => redactor.message(message)),
  };
  return [plain, storedFingerprintOf({ ...request, ...redacted, agentId })];
}

/** Returns the error of a start whose run id belongs to another request. The error reports nothing about that run. */
export function conflict({ request: { runId }, isNewId }: Pick<Asker, 'request' | 'isNewId'>): RunIdConflictError {
  const id = JSON.stringify(runId.length > 100 ? `${runId.slice(0, 100)}…` : runId);
  return new RunIdConflictError(
    isNewId
      ? `the port ids returned ${id}, the id of another run: it must return a new id at each call`
      : `run id ${id} belongs to another request: use another id, or repeat that request unchanged`,
  );
}

/**
 * Restores the identity of a record after the host's `migrate`: its fingerprint follows the present request. `migrate` may
 * change what a host gives (the labels); parent, thread and `hosted` stay.
 */
export function withIdentity(before: RunCheckpoint, after: RunCheckpoint): RunCheckpoint {
  if (after === before) return after;
  const kept = ownIdentityOf(before);
  const asked = fingerprintOfRecord(after);
  const fingerprint = asked === fingerprintOfRecord(before) ? kept.fingerprint : asked;
  return { ...after, ...kept, ...(fingerprint === undefined ? {} : { fingerprint }) };
}
