import { type ErrorData, isErrorData } from '../../values/error-data.ts';
import { hasTexts, isAmount, isCount, isObject, type JsonObject, type JsonValue } from '../../values/json.ts';
import type { FieldRedactor } from '../../values/redact.ts';

/** A person who decides. */
export interface Person {
  /** The host's id of the person; '' if the host does not give one. */
  readonly id: string;
  readonly name?: string;
}

/** A vote for a call that needs more than one approval. */
export interface Vote {
  readonly by: Person;
  /** Wall clock, ms. */
  readonly at: number;
  /** What the person wrote for those who read the decision later; the model does not read it. */
  readonly note?: string;
  /** The id of the decision, by which its repetition is recognised. */
  readonly decision?: string;
}

/** The answer of one person to a question that needs several equal ones. */
export interface AnswerVote extends Omit<Vote, 'note'> {
  readonly value: JsonValue;
}

/** What every wait has. */
export interface WaitFacts {
  readonly id: string;
  /** Wall clock, ms. */
  readonly createdAt: number;
  /** When it ends by itself, wall clock, ms; absent = never. */
  readonly dueAt?: number;
  /** The step in which it began, from 1. */
  readonly step: number;
  /** The call that waits; absent if the run itself waits. */
  readonly callId?: string;
  readonly tool?: string;
}

/** One wait of a run. */
export type Wait = WaitFacts &
  (
    | {
        readonly kind: 'approval';
        /** SHA-256 of the tool, its input and the version of the agent: an approval is valid for these alone. */
        readonly digest: string;
        readonly prompt?: string;
        readonly detail?: JsonValue;
        /** How many persons must approve. */
        readonly quorum: number;
        /** The votes for this input, one for each person. */
        readonly votes: readonly Vote[];
        /** The input as a person changed it; it still lacks votes. Absent = the input of the call. */
        readonly input?: JsonValue;
        /** Who changed the input last. */
        readonly changedBy?: Person;
        /** A hash of the tool as it was when the wait began: its schema, and its rules for approvals. */
        readonly toolHash?: string;
        /** Whether the input may be changed. */
        readonly editable: boolean;
        /** The tool decides who may answer: an answer needs a person, and may be refused. Absent = it does not. */
        readonly approvers?: true;
        readonly onExpiry: 'deny' | 'fail' | 'park';
      }
    | {
        readonly kind: 'question';
        readonly question: string;
        readonly options?: readonly JsonValue[];
        /** JSON Schema of the answer. */
        readonly schema?: JsonObject;
        /** How many persons must give the same answer; absent = 1. */
        readonly quorum?: number;
        /** The answers that it has so far, one of each person. */
        readonly votes?: readonly AnswerVote[];
        /** The workflow decides who may answer: an answer needs a person, and may be refused. Absent = it does not. */
        readonly approvers?: true;
      }
    | { readonly kind: 'event'; readonly name: string; readonly key: string; readonly schema?: JsonObject }
    | { readonly kind: 'timer' }
    | { readonly kind: 'child'; readonly childRunId: string }
    | {
        /** A model that does not answer. */
        readonly kind: 'retry';
        readonly error: ErrorData;
        readonly failures: number;
        /** Wall clock of the first failure, ms. */
        readonly since: number;
        readonly needsPerson: boolean;
      }
    | {
        /** A limit on requests or tokens gives the next model call a later turn. The wait ends a second before it. */
        readonly kind: 'limit';
        /** When the call may begin, wall clock, ms. */
        readonly turnAt: number;
        /** The model that has the turn: `provider/modelId`. */
        readonly model: string;
        /** The `by` of the rule that holds it back: `label:tenant`. Absent: the limits of the executor do not say it. */
        readonly rule?: string;
        /** Other rules are to be asked at that time. */
        readonly isPart?: true;
      }
  );

/** The wait of a run for its model: it is away, or the next call has a turn. */
export type ModelWait = Extract<Wait, { kind: 'retry' | 'limit' }>;

/** Returns whether a run waits for its model. */
export function isForModel(wait: Wait): wait is ModelWait;
export function isForModel(wait: Pick<Wait, 'kind'>): boolean;
export function isForModel({ kind }: Pick<Wait, 'kind'>): boolean {
  return kind === 'retry' || kind === 'limit';
}

/**
 * How a wait ends. `approve`, `deny`, `answer`: a person decided. `signal`: its event came. `expire`: its time is over; the
 * normal end of a timer. `wake`: a person asked for it. `ended`: the child run is over.
 */
export type HowAnswered = 'approve' | 'deny' | 'answer' | 'signal' | 'expire' | 'wake' | 'ended';

/** How a wait ended. */
export interface SettledWait {
  readonly id: string;
  readonly kind: Wait['kind'];
  readonly how: HowAnswered;
  readonly by?: Person;
  /** Wall clock, ms. */
  readonly at: number;
  readonly digest?: string;
  /** The note of the person whose approval ended it. */
  readonly note?: string;
  /** The votes of a call that needed several approvals, with their notes. */
  readonly votes?: readonly Vote[];
  /** The ids of the decisions, or of the signal, that ended it, by which a repetition is recognised. */
  readonly decisions?: readonly string[];
}

/** The waits of a run, and the ends of its last waits. */
export interface Waiting {
  readonly waits: readonly Wait[];
  /** The latest time at which the run continues, wall clock, ms; absent = when a command says so. */
  readonly wakeAt?: number;
  /** The newest 8. */
  readonly settled: readonly SettledWait[];
}

/** More than the names of the fields of `Waiting` and a time take. */
const FRAME_UNITS = 100;

/** The JSON of waits that were measured: a message may have a thousand calls that wait, and each answer is a save. */
const measured = new WeakMap<object, number>();

/** Returns a bound for the UTF-16 units of the JSON of a run's waits. A wait never changes in place. */
export function sizeOfWaiting({ waits, settled }: Waiting): number {
  let units = FRAME_UNITS;
  for (const wait of waits) units += unitsOf(wait);
  for (const wait of settled) units += unitsOf(wait);
  return units;
}

function unitsOf(wait: Wait | SettledWait): number {
  const known = measured.get(wait);
  if (known !== undefined) return known;
  const units = JSON.stringify(wait).length + 1;
  measured.set(wait, units);
  return units;
}

/** The persons or the rule that allowed a call to start, and the call's input. */
export interface Allowed {
  /** `policy`: the executor's own rule. */
  readonly by: 'policy' | readonly Person[];
  /** Wall clock, ms. */
  readonly at: number;
  readonly digest: string;
  /** The input as a person changed it. */
  readonly input?: JsonValue;
  /** The notes of the persons, a line each, or the reason of the rule. */
  readonly note?: string;
}

/** Returns whether a stored value has a form. */
type Check = (value: unknown) => boolean;
const isText: Check = (value) => typeof value === 'string';
const isFlag: Check = (value) => typeof value === 'boolean';
/** Makes a check that also accepts `undefined`. */
export const isOptional =
  (check: Check): Check =>
  (value) =>
    value === undefined || check(value);
const isListOf =
  (check: Check): Check =>
  (value) =>
    Array.isArray(value) && !value.includes(undefined) && value.every(check);

function has(value: unknown, checks: { readonly [field: string]: Check }): boolean {
  return isObject(value) && Object.entries(checks).every(([field, check]) => check(value[field]));
}

/** Returns whether a stored value is a person. */
export const isStoredPerson: Check = (value) => has(value, { id: isText, name: isOptional(isText) });
const isVote: Check = (value) => has(value, { by: isStoredPerson, at: isAmount, note: isOptional(isText) });

const isAnswerVote: Check = (value) => isVote(value) && isObject(value) && value.value !== undefined;

/** The other fields of each kind of wait. A missing kind does not compile. */
const kinds: { readonly [Kind in Wait['kind']]: Check } = {
  approval: (wait) =>
    has(wait, { digest: isText, prompt: isOptional(isText), quorum: isCount, votes: isListOf(isVote) }) &&
    has(wait, {
      editable: isFlag,
      changedBy: isOptional(isStoredPerson),
      toolHash: isOptional(isText),
      approvers: isOptional((value) => value === true),
      onExpiry: (value) => ['deny', 'fail', 'park'].includes(String(value)),
    }),
  question: (wait) =>
    has(wait, { question: isText, options: isOptional(Array.isArray), schema: isOptional(isObject) }) &&
    has(wait, {
      quorum: isOptional(isCount),
      votes: isOptional(isListOf(isAnswerVote)),
      approvers: isOptional((value) => value === true),
    }),
  event: (wait) => has(wait, { name: isText, key: isText, schema: isOptional(isObject) }),
  timer: () => true,
  child: (wait) => has(wait, { childRunId: isText }),
  retry: (wait) => has(wait, { error: isErrorData, failures: isCount, since: isAmount, needsPerson: isFlag }),
  limit: (wait) =>
    has(wait, {
      turnAt: isAmount,
      model: isText,
      rule: isOptional(isText),
      isPart: isOptional((value) => value === true),
    }),
};

const isKind: Check = (value) => Object.hasOwn(kinds, String(value));

const isWait: Check = (value) =>
  hasTexts(value, ['id', 'kind']) &&
  isKind(value.kind) &&
  has(value, { createdAt: isAmount, dueAt: isOptional(isAmount), step: isCount }) &&
  has(value, {
    callId: isOptional(isText),
    tool: isOptional(isText),
    kind: (kind) => kinds[kind as Wait['kind']](value),
  });

const isSettled: Check = (value) =>
  has(value, {
    id: isText,
    kind: isKind,
    how: isText,
    by: isOptional(isStoredPerson),
    at: isAmount,
    digest: isOptional(isText),
    note: isOptional(isText),
    votes: isOptional(isListOf(isVote)),
  });

/** Returns whether a stored value is a Waiting. */
export function isWaiting(value: unknown): boolean {
  return has(value, { waits: isListOf(isWait), wakeAt: isOptional(isAmount), settled: isListOf(isSettled) });
}

/** Returns whether a stored value is an Allowed. */
export function isAllowed(value: unknown): boolean {
  const isBy: Check = (by) => by === 'policy' || isListOf(isStoredPerson)(by);
  return has(value, { by: isBy, at: isAmount, digest: isText, note: isOptional(isText) });
}

/** Returns the waits of a run without their secrets. Ids, names and schemas stay. */
export function redactWaiting(waiting: Waiting, by: FieldRedactor): Waiting {
  return by.once(waiting, () => ({
    ...waiting,
    waits: waiting.waits.map((wait) => redactWait(wait, by)),
    settled: waiting.settled.map((end) => redactSettled(end, by)),
  }));
}

function redactSettled(settled: SettledWait, by: FieldRedactor): SettledWait {
  const { votes, ...end } = redactNote(settled, by);
  return votes === undefined ? end : { ...end, votes: votes.map((vote) => redactNote(vote, by)) };
}

/** Returns a wait without its secrets. */
export function redactWait(wait: Wait, by: Pick<FieldRedactor, 'text' | 'json' | 'error'>): Wait {
  switch (wait.kind) {
    case 'approval':
      return {
        ...wait,
        votes: wait.votes.map((vote) => redactNote(vote, by)),
        ...(wait.input === undefined ? {} : { input: by.json(wait.input) }),
        ...(wait.prompt === undefined ? {} : { prompt: by.text(wait.prompt) }),
        ...(wait.detail === undefined ? {} : { detail: by.json(wait.detail) }),
      };
    case 'question': {
      const { options, votes } = wait;
      return {
        ...wait,
        question: by.text(wait.question),
        ...(options ? { options: by.json(options) } : {}),
        ...(votes ? { votes: votes.map((vote) => ({ ...vote, value: by.json(vote.value) })) } : {}),
      };
    }
    case 'retry':
      return { ...wait, error: by.error(wait.error) };
    default:
      return wait;
  }
}

/** Returns an approval without its secrets. */
export function redactAllowed(allowed: Allowed, by: FieldRedactor): Allowed {
  const { input, ...rest } = redactNote(allowed, by);
  return input === undefined ? rest : { ...rest, input: by.json(input) };
}

function redactNote<T extends { readonly note?: string }>(value: T, by: Pick<FieldRedactor, 'text'>): T {
  return value.note === undefined ? value : { ...value, note: by.text(value.note) };
}

/** Returns how many persons must agree about a wait; 1 = one decides. */
export function quorumOf(wait: Wait): number {
  return wait.kind === 'approval' || wait.kind === 'question' ? (wait.quorum ?? 1) : 1;
}

/** Returns the answers of persons that a wait has, where it needs several. */
export function votesFor(wait: Wait): readonly (Vote | AnswerVote)[] {
  return wait.kind === 'approval' || wait.kind === 'question' ? (wait.votes ?? []) : [];
}

/** Returns whether a decision needs a person by name: others must agree, or a function says who may decide. */
export function needsName(wait: Wait): boolean {
  return quorumOf(wait) > 1 || ((wait.kind === 'approval' || wait.kind === 'question') && wait.approvers === true);
}

/** Returns in a few words what a wait is for. */
export function nameOfWait(wait: Wait): string {
  switch (wait.kind) {
    case 'approval':
      return `an approval of ${wait.tool ?? 'a call'}`;
    case 'question':
      return 'an answer';
    case 'event':
      return `the event ${wait.name}`;
    case 'timer':
      return 'a time';
    case 'child':
      return `run ${wait.childRunId}`;
    case 'retry':
      return 'its model';
    case 'limit':
      return wait.rule === undefined ? 'its turn' : `its turn, which is limited by ${wait.rule}`;
  }
}
