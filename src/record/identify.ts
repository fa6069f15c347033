import { identityOf } from '../run/field-rows.ts';
import type { HeadFields, IdentityFields } from '../run/fields.ts';
import { storedFingerprintOf } from '../run/identity.ts';
import type { OpenCall } from '../run/open-step.ts';
import type { ParentCall } from '../run/request.ts';
import type { OutcomeOwner } from '../run/result.ts';
import type { RunCheckpoint, RunHead } from './checkpoint.ts';
import { rewritten } from './upcast.ts';

/** Computes the fingerprint of a record's stored request. */
export function fingerprintOfRecord(record: RunCheckpoint): string {
  const { meta, inputs = {}, images = [], earlier = [] } = record;
  return storedFingerprintOf({ ...identityOf(record), ...meta, inputs, images, earlier });
}

/** Returns the fingerprint as the field of a kept outcome, so that a repeated start is also compared after the end. */
export function fingerprintIn({ fingerprint }: { readonly fingerprint?: string }): { readonly fingerprint?: string } {
  return fingerprint === undefined ? {} : { fingerprint };
}

/** Returns the call that began a stored run. Only a record from before fingerprints has it in its id. */
export function parentOf({ meta, parent, fingerprint }: RunHead): ParentCall | undefined {
  const { runId, parentRunId } = meta;
  if (parent || fingerprint !== undefined || parentRunId === '') return parent;
  const isSpelled = runId.startsWith(`${parentRunId}~`);
  if (!isSpelled && !runId.startsWith('~')) return undefined;
  const callId = isSpelled ? runId.slice(parentRunId.length + 1) : '';
  return { runId: parentRunId, callId, rootRunId: parentRunId };
}

/** Most characters of a prompt in a kept outcome. */
const MAX_PROMPT = 200;

/** Returns whose run it is, for its kept outcome. */
export function outcomeOwnerOf({
  meta,
  labels,
  parent,
  beganAt,
  elapsedMs,
}: IdentityFields & Partial<Pick<HeadFields, 'elapsedMs'>>): OutcomeOwner {
  const short = { ...meta, prompt: meta.prompt.slice(0, MAX_PROMPT).toWellFormed() };
  const hasLabels = labels && Object.keys(labels).length > 0;
  return {
    meta: short,
    ...(hasLabels ? { labels } : {}),
    ...(parent ? { parent } : {}),
    ...(beganAt === undefined ? {} : { beganAt }),
    ...(elapsedMs === undefined ? {} : { elapsedMs }),
  };
}

/**
 * Adds to a record the fingerprint by which its request is identified: one from before fingerprints gets that of its stored
 * request. Its running calls keep the idempotency keys that their receivers know. The next write of such a record is a
 * whole one.
 */
export function identified(record: RunCheckpoint): RunCheckpoint {
  if (record.fingerprint !== undefined) return record;
  const { openStep } = record;
  const parent = parentOf(record);
  return {
    ...record,
    ...(openStep ? { openStep: { ...openStep, calls: openStep.calls.map(withOldKey) } } : {}),
    ...(parent ? { parent } : {}),
    fingerprint: fingerprintOfRecord(record),
    [rewritten]: true,
  } as RunCheckpoint;
}

function withOldKey(call: OpenCall): OpenCall {
  return call.state === 'started' ? { ...call, hasOldKey: true } : call;
}
