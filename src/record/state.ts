import { recordable } from '../run/pipeline.ts';
import type { Progress } from '../run/progress.ts';
import type { ImagePart } from '../run/request.ts';
import { Transcript } from '../run/transcript.ts';
import { hiddenField } from '../values/hidden-field.ts';
import type { JsonObject } from '../values/json.ts';
import { enterMessage, type Message } from '../values/message.ts';
import { type RunHead, variablePart } from './checkpoint.ts';
import type { ProgressRedaction } from './redact-progress.ts';

/**
 * What the runtime hands to `Checkpointer.save`: a record without its meta and without a clock.
 * `messages` is a plain array; the runtime makes it only when somebody reads it.
 */
export interface RunCheckpointState
  extends Partial<Omit<RunHead, 'version' | 'meta' | 'updatedAt' | 'revision' | 'iteration'>> {
  readonly messages?: readonly Message[];
  readonly iteration: number;
  readonly inputs?: JsonObject;
  readonly images?: readonly ImagePart[];
  readonly earlier?: readonly Message[];
}

type HeadFields = Partial<RunHead> & Pick<RunHead, 'iteration'>;

/** What is behind a state of the runtime's own. */
interface Origin {
  readonly transcript: Transcript;
  /** The state without what has a place of its own in a record: messages, inputs, images. */
  readonly fields: HeadFields;
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
  const { redaction } = now;
  const progress = recordable(redaction?.progress(run) ?? run);
  const fields = {
    ...variablePart(progress),
    elapsedMs: Math.round(now.elapsedMs),
    seq: now.seq,
    ...(now.critic ? { critic: redaction?.json(now.critic) ?? now.critic } : {}),
  };
  const state = {
    ...fields,
    ...(Object.keys(progress.inputs.value).length > 0 ? { inputs: progress.inputs.value } : {}),
    ...(progress.images.value.length > 0 ? { images: progress.images.value } : {}),
    ...(progress.earlier.value.length > 0 ? { earlier: progress.earlier.value } : {}),
    get messages() {
      return progress.transcript.slice();
    },
  };
  origins.put(state, { transcript: progress.transcript, fields });
  return state;
}

/** The transcript behind a state: the runtime's own, or one made of a host's plain array. */
export function transcriptOf(state: RunCheckpointState): { transcript: Transcript; isOurs: boolean } {
  const origin = origins.get(state);
  if (origin) return { transcript: origin.transcript, isOurs: true };
  const messages = (state.messages ?? []).map((message, i) => enterMessage(message, `messages[${i}]`));
  return { transcript: Transcript.of(messages), isOurs: false };
}

/** What of a state goes into the head of its record. Of a host's own state its lazy `messages` are not read. */
export function headFieldsOf(state: RunCheckpointState): HeadFields {
  const origin = origins.get(state);
  if (origin) return origin.fields;
  const fields: Record<string, unknown> = {};
  for (const key of Object.keys(state)) {
    if (!elsewhere.has(key)) fields[key] = state[key as keyof RunCheckpointState];
  }
  return fields as unknown as HeadFields;
}

const elsewhere: ReadonlySet<string> = new Set(['messages', 'inputs', 'images', 'earlier']);
