import { publicParking } from '../../http/runs/run-line.ts';
import type { RunCheckpoint, RunExplanation } from '../../index.ts';
import { type BornRun, bornRunOf, idempotencyKeyOf } from '../../run/identity.ts';
import type { OpenCall } from '../../run/ledger.ts';
import type { CallView, JsonValue, ShownRecordFacts } from '../wire.ts';
import { outputValue } from './messages.ts';
import { jsonOf, Shown } from './shown-value.ts';
import type { TranscriptFacts } from './transcripts.ts';

/** Most calls of the open step that are sent. */
const SHOWN_CALLS = 200;
/** Most commands that are sent. */
const SHOWN_COMMANDS = 100;

interface Seen {
  readonly seen: RunExplanation;
  readonly record: RunCheckpoint;
  readonly facts: TranscriptFacts;
}

/** Describes the record of a run, without its conversation. @param all whether the reader sees the runs of all */
export function recordFacts({ seen, record, facts }: Seen, all: boolean): ShownRecordFacts {
  const { version, revision, updatedAt, iteration, attempts, elapsedMs = 0, finishReason } = record;
  const { spend, critic, parked } = record;
  const raw = rawOf(record);
  const shown = new Shown();
  const phases = phasesOf(seen, record);
  return {
    version,
    revision,
    updatedAt,
    bytes: Buffer.byteLength(jsonOf(raw) ?? '') + facts.bytes,
    iteration,
    attempts,
    elapsedMs,
    messages: facts.messages,
    ...(finishReason ? { finishReason } : {}),
    definition: definitionOf(seen, record),
    ...(phases ? { phases } : {}),
    ...openStepOf(record, shown),
    commands: seen.commands.slice(0, SHOWN_COMMANDS).map(({ command, sentAt }) => ({
      kind: command.kind,
      ...(sentAt === undefined ? {} : { at: sentAt }),
      ...('by' in command && command.by ? { by: command.by } : {}),
    })),
    ...(parked ? { parked: all ? parked : parkingOf(parked.code) } : {}),
    ...(spend ? { spend } : {}),
    ...(critic ? { critic: shown.value(critic, 'part=critic') } : {}),
    ...(all ? { raw: new Shown().value(raw, 'part=raw') } : {}),
  };
}

/** An own text of the host, and the person, are for readers of all runs. */
function parkingOf(given: string): { readonly code: string; readonly reason: string } {
  const { code, why } = publicParking(given);
  return { code, reason: why };
}

/** Returns a record without what other views show: its messages, and the content of its images. */
export function rawOf({ messages: _, images = [], earlier: __, ...rest }: RunCheckpoint): JsonValue {
  const named = images.map(({ mediaType }) => ({ mediaType }));
  return { ...rest, ...(named.length > 0 ? { images: named } : {}) } as unknown as JsonValue;
}

function definitionOf({ agent }: RunExplanation, { definition }: RunCheckpoint): ShownRecordFacts['definition'] {
  const name = ({ version, hash }: { readonly version: string; readonly hash: string }) =>
    version === '' ? hash : `${version} ${hash}`;
  const stored = definition?.hash ? name(definition) : undefined;
  const now = agent && name(agent.definition);
  return {
    ...(stored === undefined ? {} : { stored }),
    ...(now === undefined ? {} : { now }),
    ...(stored === undefined || now === undefined ? {} : { isSame: stored === now }),
  };
}

/** The phases of the agent as it is now; without the agent, those that the record names. */
function phasesOf(
  { agent }: RunExplanation,
  { completedPhases, openPhase }: RunCheckpoint,
): ShownRecordFacts['phases'] {
  const known = agent?.phases ?? [];
  if (known.length > 0) return known.map((name, i) => ({ name, isDone: completedPhases[i]?.name === name }));
  const done = completedPhases.map(({ name }) => ({ name, isDone: true }));
  if (openPhase) return [...done, { name: '', isDone: false }];
  return done.length > 0 ? done : undefined;
}

function openStepOf(record: RunCheckpoint, shown: Shown): Pick<ShownRecordFacts, 'openStep'> {
  const { openStep, iteration } = record;
  if (!openStep) return {};
  const calls = openStep.calls.slice(0, SHOWN_CALLS).map((call) => callView(call, bornRunOf(record), shown));
  return { openStep: { step: iteration + 1, calls, more: openStep.calls.length - calls.length } };
}

function callView(call: OpenCall, run: BornRun, shown: Shown): CallView {
  const { callId, name, effect, attempt, allowed, input, result } = call;
  const at = `call=${encodeURIComponent(callId.toWellFormed())}`;
  return {
    callId,
    name,
    effect,
    state: call.state === 'planned' && allowed ? 'allowed' : call.state,
    attempt,
    ...(allowed && allowed.by !== 'policy' ? { allowed: { by: allowed.by, at: allowed.at } } : {}),
    key: idempotencyKeyOf(run, call),
    input: shown.value(allowed?.input ?? input, `${at}&part=input`),
    ...(result ? { output: shown.value(outputValue(result), `${at}&part=output`) } : {}),
  };
}
