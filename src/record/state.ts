import type { Writable } from '../run/change.ts';
import { emptyHead } from '../run/field-rows.ts';
import type { HeadFields, IdentityFields, StartFields } from '../run/fields.ts';
import type { JournalWrite } from '../run/journal/entry.ts';
import { recordable } from '../run/pipeline.ts';
import { ownFrom, type Progress } from '../run/progress.ts';
import { Transcript } from '../run/transcript.ts';
import { hiddenField } from '../values/hidden.ts';
import type { JsonObject } from '../values/json.ts';
import { enterMessage, type Message } from '../values/message.ts';
import { addHead, addStart, type RunHead } from './checkpoint.ts';
import { headOf } from './delta.ts';
import type { ProgressRedaction } from './redact-progress.ts';

/**
 * The argument of `Checkpointer.save`: a record without its meta and without times.
 * `messages` is a plain array, made at each read.
 */
export interface RunCheckpointState
  extends Partial<Omit<IdentityFields, 'meta'>>,
    Partial<HeadFields>,
    Partial<StartFields> {
  readonly messages?: readonly Message[];
  readonly iteration: number;
  /** The events of the next process have higher numbers than this. */
  readonly seq?: number;
}

/** The head of a state: its changing part, and the identity of the run. */
type StateHead = Omit<RunHead, 'version' | 'revision' | 'updatedAt' | 'meta'>;

/** The data behind a state that the runtime made. */
interface Origin {
  readonly transcript: Transcript;
  /** The first message that the record holds: those before it belong to earlier turns of a thread. */
  readonly ownFrom: number;
  /** The state without the parts that a record stores elsewhere: messages, inputs, images. */
  readonly fields: StateHead;
  /** An upper bound for the UTF-16 units of their JSON. */
  readonly bound: number;
  readonly journal: JournalPart | undefined;
}

const origins = hiddenField<Origin>();

/** The events that become part of a run's journal with a save. */
export interface JournalPart {
  /** What the save adds, as far as no earlier save has added it. Called when the write begins. */
  write(): JournalWrite | undefined;
  /** The save is stored. */
  landed(): void;
}

/** The inputs of a save besides the run's progress. */
export interface SaveMoment {
  /** Its working time so far, ms. */
  readonly elapsedMs: number;
  /** Its next events have higher numbers than this. */
  readonly seq: number;
  readonly critic?: JsonObject | undefined;
  /** How many runs its tree has had below the root. */
  readonly treeRuns?: number | undefined;
  readonly redaction?: ProgressRedaction | undefined;
  readonly journal?: JournalPart | undefined;
}

/** Returns the present state of a run, as a checkpointer saves it. */
export function stateOf(run: Progress, now: SaveMoment): RunCheckpointState {
  const { redaction, seq } = now;
  const recorded = recordable(run);
  const progress = redaction?.progress(recorded) ?? recorded;
  const critic = now.critic ? (redaction?.json(now.critic) ?? now.critic) : progress.critic;
  const { transcript } = progress;
  const fields = { seq, elapsedMs: 0 } as Writable<StateHead>;
  const bound = addHead(fields, critic ? { ...progress, critic } : progress);
  fields.elapsedMs = Math.round(now.elapsedMs);
  if (now.treeRuns) fields.treeRuns = now.treeRuns;
  const state: Writable<RunCheckpointState> = { ...fields };
  addStart(state, progress);
  origins.put(state, { transcript, ownFrom: ownFrom(progress), fields, bound, journal: now.journal });
  return state;
}

/** Gives a state its messages, for a host's own checkpointer. Pawl's own reads the transcript: a getter would cost each save. */
export function showMessages(state: RunCheckpointState): RunCheckpointState {
  const origin = origins.get(state);
  if (!origin) return state;
  const get = () => origin.transcript.slice(origin.ownFrom);
  return Object.defineProperty(state, 'messages', { get, enumerable: true, configurable: true });
}

/**
 * Returns the transcript behind a state: the runtime's own, or one made of a host's plain array; and the index of its first
 * message that the record holds.
 */
export function transcriptOf(state: RunCheckpointState): {
  readonly transcript: Transcript;
  readonly ownFrom: number;
  readonly isOurs: boolean;
} {
  const origin = origins.get(state);
  if (origin) return { transcript: origin.transcript, ownFrom: origin.ownFrom, isOurs: true };
  const messages = (state.messages ?? []).map((message, i) => enterMessage(message, `messages[${i}]`));
  return { transcript: Transcript.of(messages), ownFrom: 0, isOurs: false };
}

/**
 * Returns the head fields of a saved state. The lazy `messages` of a host's own state are not read.
 * @param attempts for a host's own state without any
 */
export function headFieldsOf(state: RunCheckpointState, attempts: number): StateHead {
  const origin = origins.get(state);
  if (origin) return origin.fields;
  const { counters, usage, completedPhases } = emptyHead;
  return { counters, usage, completedPhases, attempts, ...headOf(state) } as StateHead;
}

/** Returns a bound for the UTF-16 units of these fields as JSON. For a host's own state none is known. */
export function sizeBound(state: RunCheckpointState): number {
  return origins.get(state)?.bound ?? Number.POSITIVE_INFINITY;
}

/** Returns the events that a state brings into the journal of its run; undefined without a journal. */
export function journalOfState(state: RunCheckpointState): JournalPart | undefined {
  return origins.get(state)?.journal;
}
