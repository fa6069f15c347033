import { hasTexts, isAmount, isCount, isObject, type JsonObject } from '../values/json.ts';
import { encodeMessage, isMessages, type Message } from '../values/message.ts';
import type { FieldRedactor } from '../values/redact.ts';
import { isSpend, isUsage, noUsage, type Spend, type Usage } from '../values/usage.ts';
import { type GuardCounters, isCounters, noCounters } from './limits.ts';
import { isOpenStep, type OpenStep, redactStep, sizeOfStep } from './open-step.ts';
import { isOpenPhase, isPhaseOutput, type OpenPhase, type PhaseOutput, redactPhase } from './phase.ts';
import {
  type ImagePart,
  isLabels,
  isMeta,
  isParentCall,
  type Labels,
  metaFields,
  type ParentCall,
  type RunCheckpointMeta,
} from './request.ts';
import { isOutcome, type RunOutcome, redactOutcome } from './result.ts';
import { isWaiting, redactWaiting, type Waiting } from './wait.ts';

/*
 * Everything that is recorded of a run is declared here: a field in one of the interfaces, and a row of the table that says
 * how it is stored, checked, redacted and bounded. A field without a row does not compile. Records, their heads, resume
 * states and the progress of a live run have their fields from here.
 */

/** Which definition of its agent a run was begun with. */
export interface RunDefinition {
  readonly version: string;
  readonly hash: string;
}

/** Why a record was set aside. */
export interface ParkedReason {
  readonly code: string;
  readonly reason: string;
}

/** A run's place in a conversation of several runs. */
export interface ThreadPlace {
  readonly id: string;
  /** How many messages of the thread come before the run's own. */
  readonly upTo: number;
}

/** Which run it is. Written once, with the first record; lists read it. */
export interface IdentityFields {
  readonly meta: RunCheckpointMeta;
  /** Tells the request from others: a start with another one is refused. */
  readonly fingerprint?: string;
  /** The call that began the run; absent = a host did. */
  readonly parent?: ParentCall;
  /** What the host called the run by, to find it in lists (`invocation.labels`). They are not redacted. */
  readonly labels?: Labels;
  /** The conversation that the run is a turn of. This version stores it; no run has one yet. */
  readonly thread?: ThreadPlace;
  /** A host's machine began the run (`executor.logic`). */
  readonly hosted?: true;
}

/** What a run was given at its start. Written once, with the first record; lists do not read it. */
export interface StartFields {
  /** What the host gave the run for its tools. */
  readonly inputs: JsonObject;
  readonly images: readonly ImagePart[];
  /** The earlier conversation (`invocation.history`). A conversation in `messages` begins with it. */
  readonly earlier: readonly Message[];
}

/** Where a run stands. Written with each save, in the order of the table. */
export interface HeadFields {
  /** Working time before this process, ms. */
  readonly elapsedMs: number;
  /** Completed model turns over the whole life of the run. */
  readonly iteration: number;
  /** The step whose tool calls have not all answered. */
  readonly openStep?: OpenStep;
  /** The phase in progress of a multi-phase agent; `messages` is its conversation. */
  readonly openPhase?: OpenPhase;
  /** What the run waits for; absent = nothing. */
  readonly waiting?: Waiting;
  /** Steered messages that wait for the next turn. */
  readonly undelivered: readonly Message[];
  /** What the critic wants to say to the model. It comes after what the host has said. */
  readonly nudges: readonly Message[];
  /** What the critic wants to know after a crash. */
  readonly critic?: JsonObject;
  /** What a budget counts; absent without one. */
  readonly spend?: Spend;
  readonly counters: GuardCounters;
  readonly usage: Usage;
  readonly completedPhases: readonly PhaseOutput[];
  /** Starts in a row that recorded nothing new. */
  readonly attempts: number;
  readonly definition: RunDefinition;
  /** Ids of the commands that the run has taken in, as long as they may wait in the store, or be sent again. */
  readonly commands: readonly string[];
  /** Steps that the critic has allowed beyond the agent's limit. */
  readonly raisedSteps: number;
  readonly outcome?: RunOutcome;
  readonly parked?: ParkedReason;
}

/** Everything that is recorded of a run. A field that is not optional is in every run; a record may lack it (see `empty`). */
export interface RunFields extends IdentityFields, StartFields, HeadFields {
  /** The conversation, as it is before compaction. */
  readonly messages: readonly Message[];
}

/** Where a field is written: `identity` and `start` once, `head` with each save, of `messages` what is new. */
export type FieldPart = 'identity' | 'start' | 'head' | 'messages';

/** How a field is stored, checked, redacted and bounded. */
export interface FieldSpec<T> {
  readonly part: FieldPart;
  /** A record without it is damaged. */
  readonly required?: true | undefined;
  /** What a record without it means. */
  readonly empty?: T | undefined;
  /** `unless-empty`: left out of records as long as it is absent, or as empty as `empty`. */
  readonly write: 'always' | 'unless-empty';
  isValid(value: unknown): boolean;
  /** `public`: holds no text of hosts, models or tools. There is no default. */
  readonly redact: 'public' | ((value: T, by: FieldRedactor) => T);
  /** A bound for the UTF-16 units of its JSON; 0 = never more than `SMALL_FIELD`. */
  readonly size: 0 | ((value: T) => number);
}

type PartOf<K> = K extends keyof IdentityFields
  ? 'identity'
  : K extends keyof StartFields
    ? 'start'
    : K extends keyof HeadFields
      ? 'head'
      : 'messages';

/** A field that every run has: a new run begins with its empty value. */
type WhenAbsent<K, T> = undefined extends T
  ? unknown
  : K extends keyof (StartFields & HeadFields)
    ? { readonly empty: T }
    : { readonly required: true };

/** One row for each field. */
export type FieldTable<Fields> = {
  readonly [K in keyof Required<Fields>]: FieldSpec<NonNullable<Fields[K]>> & { readonly part: PartOf<K> } & WhenAbsent<
      K,
      Fields[K]
    >;
};

/** No field of size 0 has more UTF-16 units than this. */
export const SMALL_FIELD = 4_096;

/** A character may be escaped in JSON: with 6 bytes for a UTF-16 unit, and 3 bytes are counted for a unit of JSON. */
const inJson = (text: string): number => 2 * text.length;
const sizeOfMessages = (messages: readonly Message[]): number =>
  messages.reduce((units, message) => units + encodeMessage(message).length + 1, 0);
const redactMessages = (messages: readonly Message[], by: FieldRedactor): readonly Message[] =>
  by.list(messages, (message) => by.message(message));

/**
 * The fields of a run. Their order is that of the JSON: what changes with most saves comes first, because a database's log
 * leaves out how a row ends when it ends as before.
 */
export const runFields = {
  meta: {
    part: 'identity',
    required: true,
    write: 'always',
    isValid: isMeta,
    redact: (meta, by) => ({ ...meta, prompt: by.text(meta.prompt) }),
    size: (meta) => metaFields.reduce((units, field) => units + inJson(meta[field]), SMALL_FIELD),
  },
  fingerprint: {
    part: 'identity',
    write: 'unless-empty',
    isValid: (value) => typeof value === 'string',
    redact: 'public',
    size: 0,
  },
  parent: {
    part: 'identity',
    write: 'unless-empty',
    isValid: isParentCall,
    redact: 'public',
    size: ({ callId }) => SMALL_FIELD + inJson(callId),
  },
  labels: { part: 'identity', write: 'unless-empty', isValid: isLabels, redact: 'public', size: 0 },
  thread: {
    part: 'identity',
    write: 'unless-empty',
    isValid: (value) => hasTexts(value, ['id']) && isCount(value.upTo),
    redact: 'public',
    size: ({ id }) => SMALL_FIELD + inJson(id),
  },
  hosted: { part: 'identity', write: 'unless-empty', isValid: (value) => value === true, redact: 'public', size: 0 },
  elapsedMs: { part: 'head', empty: 0, write: 'always', isValid: isAmount, redact: 'public', size: 0 },
  iteration: { part: 'head', required: true, empty: 0, write: 'always', isValid: isCount, redact: 'public', size: 0 },
  openStep: {
    part: 'head',
    write: 'unless-empty',
    isValid: isOpenStep,
    redact: redactStep,
    size: sizeOfStep,
  },
  waiting: {
    part: 'head',
    write: 'unless-empty',
    isValid: isWaiting,
    redact: redactWaiting,
    size: (waiting) => JSON.stringify(waiting).length,
  },
  openPhase: { part: 'head', write: 'unless-empty', isValid: isOpenPhase, redact: 'public', size: 0 },
  undelivered: {
    part: 'head',
    empty: [],
    write: 'unless-empty',
    isValid: isMessages,
    redact: redactMessages,
    size: sizeOfMessages,
  },
  nudges: {
    part: 'head',
    empty: [],
    write: 'unless-empty',
    isValid: isMessages,
    redact: redactMessages,
    size: sizeOfMessages,
  },
  critic: {
    part: 'head',
    write: 'unless-empty',
    isValid: isObject,
    redact: (state, by) => by.json(state),
    size: (state) => JSON.stringify(state).length,
  },
  spend: { part: 'head', write: 'unless-empty', isValid: isSpend, redact: 'public', size: 0 },
  counters: {
    part: 'head',
    empty: noCounters,
    write: 'always',
    isValid: isCounters,
    redact: 'public',
    size: ({ repeats }) => SMALL_FIELD + 64 * Object.keys(repeats).length,
  },
  usage: { part: 'head', empty: noUsage, write: 'always', isValid: isUsage, redact: 'public', size: 0 },
  completedPhases: {
    part: 'head',
    required: true,
    empty: [],
    write: 'always',
    isValid: (value) => Array.isArray(value) && value.every(isPhaseOutput),
    redact: (phases, by) => by.list(phases, (phase) => redactPhase(phase, by)),
    size: (phases) => phases.reduce((units, phase) => units + JSON.stringify(phase).length + 1, 0),
  },
  attempts: { part: 'head', empty: 0, write: 'always', isValid: isCount, redact: 'public', size: 0 },
  definition: {
    part: 'head',
    empty: { version: '', hash: '' },
    write: 'always',
    isValid: (value) => hasTexts(value, ['version', 'hash']),
    redact: 'public',
    size: ({ version }) => SMALL_FIELD + inJson(version),
  },
  commands: {
    part: 'head',
    empty: [],
    write: 'unless-empty',
    isValid: (value) => Array.isArray(value) && value.every((id) => typeof id === 'string'),
    redact: 'public',
    size: (ids) => ids.reduce((units, id) => units + inJson(id) + 3, 2),
  },
  raisedSteps: { part: 'head', empty: 0, write: 'unless-empty', isValid: isCount, redact: 'public', size: 0 },
  outcome: {
    part: 'head',
    write: 'unless-empty',
    isValid: isOutcome,
    redact: redactOutcome,
    size: () => Number.POSITIVE_INFINITY,
  },
  parked: {
    part: 'head',
    write: 'unless-empty',
    isValid: (value) => hasTexts(value, ['code', 'reason']),
    redact: (parked, by) => ({ ...parked, reason: by.text(parked.reason) }),
    size: ({ code, reason }) => SMALL_FIELD + inJson(code + reason),
  },
  inputs: {
    part: 'start',
    empty: {},
    write: 'unless-empty',
    isValid: isObject,
    redact: (inputs, by) => by.json(inputs),
    size: (inputs) => JSON.stringify(inputs).length,
  },
  images: {
    part: 'start',
    empty: [],
    write: 'unless-empty',
    isValid: (value) => Array.isArray(value) && value.every(isObject),
    redact: 'public',
    size: (images) => JSON.stringify(images).length,
  },
  earlier: {
    part: 'start',
    empty: [],
    write: 'unless-empty',
    isValid: isMessages,
    redact: redactMessages,
    size: sizeOfMessages,
  },
  messages: {
    part: 'messages',
    required: true,
    write: 'always',
    isValid: isMessages,
    redact: redactMessages,
    size: sizeOfMessages,
  },
} satisfies FieldTable<RunFields>;

/** The head fields that every run has. */
export type FullHead = {
  readonly [K in keyof HeadFields as undefined extends HeadFields[K] ? never : K]: HeadFields[K];
};

/** What they are in a run that has done nothing. */
export const emptyHead: FullHead = Object.fromEntries(
  Object.entries(runFields).flatMap(([key, spec]) =>
    spec.part === 'head' && 'empty' in spec ? [[key, spec.empty]] : [],
  ),
) as unknown as FullHead;

/** A row, with the name of its field. */
export interface FieldRow {
  readonly key: keyof RunFields;
  readonly spec: FieldSpec<unknown>;
}

const allRows: readonly FieldRow[] = Object.entries(runFields).map(([key, spec]) => ({
  key: key as keyof RunFields,
  spec: spec as FieldSpec<unknown>,
}));

/** The rows of some parts, in their order. */
export function rowsOf(...parts: readonly FieldPart[]): readonly FieldRow[] {
  return allRows.filter(({ spec }) => parts.includes(spec.part));
}

/** Which run it is, without its meta. */
export type Identity = Omit<IdentityFields, 'meta'>;

const identityKeys = rowsOf('identity').flatMap(({ key }) => (key === 'meta' ? [] : [key as keyof Identity]));

/** What a request, a head or a progress says of which run it is. */
export function identityOf(of: Identity): Identity {
  const given = identityKeys.filter((key) => of[key] !== undefined).map((key) => [key, of[key]]);
  return Object.fromEntries(given) as Identity;
}
