// All fields of a run, as a table: when each is written, and how it is checked, redacted and bounded.
import { hasTexts, isAmount, isCount, isObject, type JsonObject } from '../values/json.ts';
import { encodeMessage, isMessages, type Message } from '../values/message.ts';
import { isRunModels, type RunModel } from '../values/model-use.ts';
import type { FieldRedactor } from '../values/redact.ts';
import { isSpend, isUsage, noUsage, type Spend, type Usage } from '../values/usage.ts';
import { isAttempt, isRetries, isTrace, type RunAttempt, type RunRetry } from './attempt.ts';
import type { FieldTable } from './field-rows.ts';
import { type GuardCounters, isCounters, noCounters } from './limits.ts';
import { isOpenStep, type OpenStep, redactStep, sizeOfStep } from './open-step.ts';
import { isOpenPhase, isPhaseOutput, type OpenPhase, type PhaseOutput, redactPhase } from './phase.ts';
import { type FinishReason, isFinishReason } from './reply.ts';
import {
  type ForkedFrom,
  type ImagePart,
  isForkedFrom,
  isLabels,
  isMeta,
  isParentCall,
  type Labels,
  labelsGiven,
  metaFields,
  type ParentCall,
  type RunCheckpointMeta,
} from './request.ts';
import { isOutcome, type RunOutcome, redactOutcome } from './result.ts';
import { isStoredPerson, isWaiting, type Person, redactWaiting, sizeOfWaiting, type Waiting } from './waits/wait.ts';
import { isWorkflowState, redactWorkflow, type WorkflowState } from './workflow/state.ts';

/*
 * All recorded fields of a run are declared here: each in one of the interfaces, and as a row of the table that says how it is
 * stored, checked, redacted and bounded. A field without a row does not compile. Records, their heads, resume states and the
 * progress of a live run get their fields from here.
 */

/** The definition of its agent that a run began with. */
export interface RunDefinition {
  readonly version: string;
  readonly hash: string;
}

/** Why a record was parked. */
export interface ParkedReason {
  readonly code: string;
  readonly reason: string;
  /** The person who parked it; absent = no person did, or it is not known. */
  readonly by?: Person;
}

/** Since when no process could continue a run: what is missing is in the setup of each process that tried it. */
export interface SetupFault {
  /** The code of the fault. */
  readonly code: string;
  /** Wall clock, ms. */
  readonly since: number;
}

/** Returns whether a parked run waits for a person. One whose agent had changed starts again when the agent is what it was. */
export function staysParked(code: string | undefined): boolean {
  return code !== 'DEFINITION_CHANGED' && code !== 'MIGRATION_FAILED';
}

/** A run's place in a conversation of several runs. */
export interface ThreadPlace {
  readonly id: string;
  /** The number of messages of the thread before the run's own. */
  readonly upTo: number;
}

/** The short fields that a host gives with its request: an invocation has them under the same names. */
export interface GivenFields {
  /**
   * Labels to find the run by (`executor.list({ labels })`): at most 32 names, with their texts at most 1,024 bytes of UTF-8.
   * They are part of the request, and no redaction changes them.
   * @default none
   * @example labels: { tenant: 'acme' }
   */
  readonly labels?: Labels;
}

/** The identity of a run. Written once, with the first record; lists read it. */
export interface IdentityFields extends GivenFields {
  readonly meta: RunCheckpointMeta;
  /** A hash of the request: a start with another request is refused. */
  readonly fingerprint?: string;
  /** The call that began the run; absent = a host did. */
  readonly parent?: ParentCall;
  /** The conversation that contains the run as a turn. This version stores it; no run has one yet. */
  readonly thread?: ThreadPlace;
  /** A host's machine began the run (`executor.logic`). */
  readonly hosted?: true;
  /**
   * Random, made with the run: with the run id it makes the keys of calls, the ids of children and the id of the end, so that
   * another run under the same id shares none of them. Absent: a run of version 2 or 1, whose keys are made of its id alone.
   */
  readonly birth?: string;
  /** When the run began, wall clock of its process, ms; absent in a run of version 2 or 1. */
  readonly beganAt?: number;
  /** The run is a fork: its first steps are those of another one. */
  readonly forkedFrom?: ForkedFrom;
  /** Of a fork, and of the runs below it: what calls with an effect do. Absent: they run. */
  readonly effects?: 'ask' | 'refuse';
  /** What the host's tracing keeps of the run's trace, for later processes; absent = it is not traced. */
  readonly trace?: string;
  /** It came from a file of exported runs: it has ended, and no process continues it. */
  readonly imported?: true;
}

/** The data that a run got at its start. Written once, with the first record; lists do not read it. */
export interface StartFields {
  /** The host's values for the tools of this run. */
  readonly inputs: JsonObject;
  readonly images: readonly ImagePart[];
  /** The earlier conversation (`invocation.history`). A conversation in `messages` begins with it. */
  readonly earlier: readonly Message[];
  /**
   * Of an ended turn of a thread whose agent has phases: its own messages, those of all phases. It is written with the end, when
   * `messages` becomes what the thread shows.
   */
  readonly phaseMessages?: readonly Message[];
}

/** The state of a run. Written with each save, in the order of the table. */
export interface HeadFields {
  /** Working time before this process, ms. */
  readonly elapsedMs: number;
  /** Completed model turns over the whole life of the run. */
  readonly iteration: number;
  /** The step with unanswered tool calls. */
  readonly openStep?: OpenStep;
  /** The phase in progress of a multi-phase agent; `messages` is its conversation. */
  readonly openPhase?: OpenPhase;
  /** The waits of the run; absent = none. */
  readonly waiting?: Waiting;
  /** The machine of a workflow, its timers and its events; absent = the run is an agent's. */
  readonly workflow?: WorkflowState;
  /** Steered messages that wait for the next turn. */
  readonly undelivered: readonly Message[];
  /** The critic's messages to the model. They come after those of the host. */
  readonly nudges: readonly Message[];
  /** The critic's state, for the time after a crash. */
  readonly critic?: JsonObject;
  /** The cost as a budget counts it; absent without a budget. */
  readonly spend?: Spend;
  readonly counters: GuardCounters;
  readonly usage: Usage;
  /** The models that worked for the run; the last one does now. */
  readonly models?: readonly RunModel[];
  /** How the answer ended; absent = there is none, or another step followed it. */
  readonly finishReason?: FinishReason;
  readonly completedPhases: readonly PhaseOutput[];
  /** Starts in a row that recorded nothing new. */
  readonly attempts: number;
  /** The newest attempt; absent: no process has worked on the run, or the record is of an earlier version. */
  readonly attempt?: RunAttempt;
  /** The retries of the run, the newest last; absent = none. */
  readonly retries?: readonly RunRetry[];
  readonly definition: RunDefinition;
  /** Ids of the commands that the run has accepted: the store may still hold them, or their senders may send them again. */
  readonly commands: readonly string[];
  /** Steps that the critic has allowed beyond the agent's limit. */
  readonly raisedSteps: number;
  /** How many runs had begun below the root of its tree, as far as it was known at this save; absent = none. */
  readonly treeRuns?: number;
  readonly outcome?: RunOutcome;
  /** Later turns of a thread do not send this one. `true`: a provider refused its content for good; `parked`: a message ended it. */
  readonly refused?: true | 'parked';
  readonly parked?: ParkedReason;
  /** The next recorded step removes it. */
  readonly setup?: SetupFault;
}

/** All recorded fields of a run. Every run has each field that is not optional; a record may lack it (see `empty`). */
export interface RunFields extends IdentityFields, StartFields, HeadFields {
  /** The conversation, before compaction. */
  readonly messages: readonly Message[];
}

/** The longest birth that a record may have. */
const BIRTH_CHARS = 100;

/** No field of size 0 has more UTF-16 units than this. */
export const SMALL_FIELD = 4_096;

/** JSON may escape a character with 6 bytes for a UTF-16 unit; the bound counts 3 bytes for a unit of JSON. */
const isOptionalPerson = (by: unknown): boolean => by === undefined || isStoredPerson(by);
const isEffects = (value: unknown): boolean => value === 'ask' || value === 'refuse';
const isBirth = (value: unknown): boolean => typeof value === 'string' && value !== '' && value.length <= BIRTH_CHARS;
const isRefusal = (value: unknown): boolean => value === true || value === 'parked';
const inJson = (text: string): number => 2 * text.length;
const sizeOfMessages = (messages: readonly Message[]): number =>
  messages.reduce((units, message) => units + encodeMessage(message).length + 1, 0);
const redactMessages = (messages: readonly Message[], by: FieldRedactor): readonly Message[] =>
  by.list(messages, (message) => by.message(message));

const ofMessages = {
  part: 'head',
  empty: [],
  write: 'unless-empty',
  isValid: isMessages,
  redact: redactMessages,
  size: sizeOfMessages,
} as const;

/**
 * The fields of a run, in the order of the JSON. The fields that most saves change come first, because a database's log leaves
 * out the end of a row if it did not change.
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
  labels: {
    part: 'identity',
    given: { read: labelsGiven, isAsked: true },
    write: 'unless-empty',
    isValid: isLabels,
    redact: 'public',
    size: 0,
  },
  thread: {
    part: 'identity',
    write: 'unless-empty',
    isValid: (value) => hasTexts(value, ['id']) && isCount(value.upTo),
    redact: 'public',
    size: ({ id }) => SMALL_FIELD + inJson(id),
  },
  hosted: { part: 'identity', write: 'unless-empty', isValid: (value) => value === true, redact: 'public', size: 0 },
  birth: { part: 'identity', write: 'unless-empty', isValid: isBirth, redact: 'public', size: 0 },
  beganAt: { part: 'identity', write: 'unless-empty', isValid: isAmount, redact: 'public', size: 0 },
  forkedFrom: {
    part: 'identity',
    write: 'unless-empty',
    isValid: isForkedFrom,
    redact: 'public',
    size: ({ runId }) => SMALL_FIELD + inJson(runId),
  },
  effects: { part: 'identity', write: 'unless-empty', isValid: isEffects, redact: 'public', size: 0 },
  trace: { part: 'identity', write: 'unless-empty', isValid: isTrace, redact: 'public', size: 0 },
  imported: { part: 'identity', write: 'unless-empty', isValid: (value) => value === true, redact: 'public', size: 0 },
  elapsedMs: { part: 'head', empty: 0, write: 'always', isValid: isAmount, redact: 'public', size: 0 },
  iteration: { part: 'head', required: true, empty: 0, write: 'always', isValid: isCount, redact: 'public', size: 0 },
  openStep: { part: 'head', write: 'unless-empty', isValid: isOpenStep, redact: redactStep, size: sizeOfStep },
  waiting: { part: 'head', write: 'unless-empty', isValid: isWaiting, redact: redactWaiting, size: sizeOfWaiting },
  workflow: {
    part: 'head',
    write: 'unless-empty',
    isValid: isWorkflowState,
    redact: redactWorkflow,
    size: (state) => JSON.stringify(state).length,
  },
  openPhase: { part: 'head', write: 'unless-empty', isValid: isOpenPhase, redact: 'public', size: 0 },
  undelivered: ofMessages,
  nudges: ofMessages,
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
  models: {
    part: 'head',
    write: 'unless-empty',
    isValid: isRunModels,
    redact: (models, by) =>
      by.list(models, (each) => by.once(each, ({ model, ...use }) => ({ model: by.text(model), ...use }))),
    size: (models) => models.reduce((units, { model }) => units + inJson(model), SMALL_FIELD),
  },
  finishReason: { part: 'head', write: 'unless-empty', isValid: isFinishReason, redact: 'public', size: 0 },
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
  attempt: { part: 'head', write: 'unless-empty', isValid: isAttempt, redact: 'public', size: 0 },
  retries: {
    part: 'head',
    write: 'unless-empty',
    isValid: isRetries,
    redact: 'public',
    size: (retries) => retries.reduce((units, { error }) => units + inJson(error.code) + 64, SMALL_FIELD),
  },
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
  treeRuns: { part: 'head', write: 'unless-empty', isValid: isCount, redact: 'public', size: 0 },
  outcome: {
    part: 'head',
    write: 'unless-empty',
    isValid: isOutcome,
    redact: redactOutcome,
    size: () => Number.POSITIVE_INFINITY,
  },
  refused: { part: 'head', write: 'unless-empty', isValid: isRefusal, redact: 'public', size: 0 },
  parked: {
    part: 'head',
    write: 'unless-empty',
    isValid: (value) =>
      hasTexts(value, ['code', 'reason']) && isOptionalPerson((value as { readonly by?: unknown }).by),
    redact: (parked, by) => ({ ...parked, reason: by.text(parked.reason) }),
    size: ({ code, reason, by }) => SMALL_FIELD + inJson(code + reason + (by?.id ?? '') + (by?.name ?? '')),
  },
  setup: {
    part: 'head',
    write: 'unless-empty',
    isValid: (value) => hasTexts(value, ['code']) && isAmount((value as { readonly since?: unknown }).since),
    redact: 'public',
    size: ({ code }) => SMALL_FIELD + inJson(code),
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
  phaseMessages: {
    part: 'start',
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
