import type { Writable } from '../run/change.ts';
import { emptyHead, type HeadFields, type IdentityFields, type StartFields } from '../run/fields.ts';
import { recordable } from '../run/pipeline.ts';
import type { Progress } from '../run/progress.ts';
import { Transcript } from '../run/transcript.ts';
import { hiddenField } from '../values/hidden-field.ts';
import type { JsonObject } from '../values/json.ts';
import { enterMessage, type Message } from '../values/message.ts';
import { addHead, addStart, type RunHead } from './checkpoint.ts';
import { headOf } from './delta.ts';
import type { ProgressRedaction } from './redact-progress.ts';

/**
 * What the runtime hands to `Checkpointer.save`: a record without its meta and without a clock.
 * `messages` is a plain array; the runtime makes it only when somebody reads it.
 */
export interface RunCheckpointState
  extends Partial<Omit<IdentityFields, 'meta'>>,
    Partial<HeadFields>,
    Partial<StartFields> {
  readonly messages?: readonly Message[];
  readonly iteration: number;
  /** Above this number the events of the next process begin. */
  readonly seq?: number;
}

/** The head of a state: what of it changes from save to save, and which run it is. */
type StateHead = Omit<RunHead, 'version' | 'revision' | 'updatedAt' | 'meta'>;

/** What is behind a state of the runtime's own. */
interface Origin {
  readonly transcript: Transcript;
  /** The state without what has a place of its own in a record: messages, inputs, images. */
  readonly fields: StateHead;
  /** No more UTF-16 units has their JSON. */
  readonly bound: number;
}

const origins = hiddenField<Origin>();

/** What a save must know besides the run's progress. */
export interface SaveMoment {
  /** Its working time so far, ms. */
  readonly elapsedMs: number;
  /** Above this number its events go on. */
  readonly seq: number;
  readonly critic?: JsonObject | undefined;
  readonly redaction?: ProgressRedaction | undefined;
}

/** The state of a run at this moment. */
export function stateOf(run: Progress, now: SaveMoment): RunCheckpointState {
  const { redaction, seq } = now;
  const progress = recordable(redaction?.progress(run) ?? run);
  const critic = now.critic ? (redaction?.json(now.critic) ?? now.critic) : progress.critic;
  const { transcript } = progress;
  const fields = { seq, elapsedMs: 0 } as Writable<StateHead>;
  const bound = addHead(fields, critic ? { ...progress, critic } : progress);
  fields.elapsedMs = Math.round(now.elapsedMs);
  const state = {
    ...fields,
    get messages() {
      return transcript.slice();
    },
  };
  addStart(state, progress);
  origins.put(state, { transcript, fields, bound });
  return state;
}

/** The transcript behind a state: the runtime's own, or one made of a host's plain array. */
export function transcriptOf(state: RunCheckpointState): { transcript: Transcript; isOurs: boolean } {
  const origin = origins.get(state);
  if (origin) return { transcript: origin.transcript, isOurs: true };
  const messages = (state.messages ?? []).map((message, i) => enterMessage(message, `messages[${i}]`));
  return { transcript: Transcript.of(messages), isOurs: false };
}

/**
 * What of a state goes into the head of its record. Of a host's own state its lazy `messages` are not read.
 * @param attempts of a host's own state that has none
 */
export function headFieldsOf(state: RunCheckpointState, attempts: number): StateHead {
  const origin = origins.get(state);
  if (origin) return origin.fields;
  const { counters, usage, completedPhases } = emptyHead;
  return { counters, usage, completedPhases, attempts, ...headOf(state) } as StateHead;
}

/** A bound for the UTF-16 units of these fields as JSON. Of a host's own state none is known. */
export function sizeBound(state: RunCheckpointState): number {
  return origins.get(state)?.bound ?? Number.POSITIVE_INFINITY;
}
