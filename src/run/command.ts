import { CheckpointCorruptError, UndeliveredError } from '../values/errors.ts';
import { hasTexts, isAmount, isCount, isObject, type JsonObject, type JsonValue } from '../values/json.ts';
import { enterMessage, type Message, type ToolOutput } from '../values/message.ts';
import { isUsage, type Usage } from '../values/usage.ts';
import type { Person } from './waits/wait.ts';
import { isMachineEvent } from './workflow/event.ts';

/** The answer of a person to a wait of a run. */
export interface Answer {
  readonly how: 'approve' | 'deny' | 'answer' | 'wake';
  /** The answer to a question, for `answer`. */
  readonly value?: JsonValue;
  /** The input of the call as the person changed it, for `approve`. */
  readonly input?: JsonValue;
  /** What the person wrote for those who read the decision later, for `approve`; the model does not read it. */
  readonly note?: string;
  /** Why the call may not start, for `deny`. */
  readonly reason?: string;
  /** The digest of the wait that the person saw: an answer to another one is refused. */
  readonly digest?: string;
}

/** A signal that a store delivered to a wait of a run. */
export interface SignalAnswer {
  readonly how: 'signal';
  readonly value: JsonValue;
  /** The signal, so that a run whose wait has closed meanwhile can give it back. */
  readonly signal: {
    readonly id: string;
    readonly topic: string;
    readonly untilMs: number;
    /** When it was sent, wall clock, ms: it may have been kept before its wait was known. */
    readonly sentAt?: number | undefined;
  };
}

/** A command to a run from outside its process. Sent twice with the same `id`, it counts once. */
export type Command =
  | { readonly id: string; readonly kind: 'cancel'; readonly reason?: string }
  | {
      readonly id: string;
      readonly kind: 'steer';
      readonly text: string;
      readonly children?: boolean;
      /** The id of the message in the thread of the run. */
      readonly messageId?: string;
      readonly by?: Person;
    }
  | {
      readonly id: string;
      readonly kind: 'answer';
      readonly waitId: string;
      readonly answer: Answer | SignalAnswer;
      readonly by?: Person;
    }
  | { readonly id: string; readonly kind: 'event' /** For the machine of a workflow. */; readonly event: JsonObject }
  | {
      /** A child that had left its parent waiting has ended. */
      readonly id: string;
      readonly kind: 'child-ended';
      readonly childRunId: string;
      /** The call of the parent that began the child. */
      readonly callId: string;
      /** The result of that call. */
      readonly output: ToolOutput;
      readonly usage?: Usage;
      /** How many runs the tree of the child had had, as far as it knew. */
      readonly treeRuns?: number;
    };

/** A command of a kind that only a newer version knows. It stays in the inbox, for a process of that version. */
export interface UnknownCommand {
  readonly id: string;
  readonly kind: 'unknown';
  /** The version of commands that has it. */
  readonly v: number;
}

/** A command on its way to its run. */
export interface SentCommand {
  readonly runId: string;
  readonly command: Command | UnknownCommand;
  /** When the store took it, by the store's own wall clock, ms. Absent in stores without it, and in commands of older versions. */
  readonly sentAt?: number;
  /** Its number: a later command of the same run has a higher one. Absent in stores without `leave`. */
  readonly seq?: number;
}

/** The version of commands: a stored kind that only a newer version knows is no damage. */
const COMMAND_VERSION = 3;

/** The version that brought each kind. It is stored with kinds above 1. */
const kinds: { readonly [Kind in Command['kind']]: number } = {
  cancel: 1,
  steer: 1,
  answer: 2,
  'child-ended': 2,
  event: 3,
};

/** Most commands that may wait for one run. */
export const MAX_COMMANDS = 1_000;

/** Most cancels that may wait besides. */
const MAX_CANCELS = 24;

/** Most commands of all kinds for one run: an inbox is read up to this number. */
export const MAX_WAITING: number = MAX_COMMANDS + MAX_CANCELS;

/** Most characters of commands that may wait for one run, as they are stored. */
export const MAX_INBOX_CHARS: number = 16 * 2 ** 20;

/** Shorter commands are accepted even if the characters are used up. */
const SMALL_CHARS = 4_096;

/** Returns the most commands of a kind that may wait for one run: a cancel must always find a place. */
export function placesFor(kind: Command['kind']): number {
  return kind === 'cancel' ? MAX_WAITING : MAX_COMMANDS;
}

/** Returns whether the inbox of a run has no room for another command of this length. */
export function isInboxFull(chars: number, text: string, kind: Command['kind']): boolean {
  return kind !== 'cancel' && text.length > SMALL_CHARS && chars + text.length > MAX_INBOX_CHARS;
}

/** Longest `id`, in characters. */
const MAX_ID_CHARS = 128;

/** Longest text of a command, in characters; of an answer: of its JSON. */
const MAX_TEXT_CHARS = 2 ** 20;

/** Longest note or reason of an answer, in characters: the record holds one for each person. */
const MAX_NOTE_CHARS = 4_096;

/** Longest id, and longest name, of a person, in characters. */
const MAX_PERSON_CHARS = 256;

/** Longest JSON of the output of a child, in characters. */
export const MAX_OUTPUT_CHARS: number = 2 ** 23;

/**
 * Checks a command that is about to be sent to a run.
 * @throws {TypeError} for a value that is not a command
 * @throws {UNDELIVERED} for a text that is too long
 */
export function checkCommand(command: Command): Command {
  if (!isCommand(command)) {
    throw new TypeError(
      "a command is { id, kind: 'cancel', reason? }, { id, kind: 'steer', text, children?, by? }, " +
        "{ id, kind: 'answer', waitId, answer, by? }, { id, kind: 'event', event } or { id, kind: 'child-ended', childRunId, callId, output, usage?, treeRuns? }",
    );
  }
  const tooLong = tooLongCommand(command);
  if (tooLong) throw tooLong;
  return command;
}

/** Returns the error for a message or reason that is too long for a run, or undefined. */
export function tooLongToSay({ length }: string): UndeliveredError | undefined {
  return tooLong(length, MAX_TEXT_CHARS);
}

function tooLongCommand(command: Command): UndeliveredError | undefined {
  if (command.kind === 'steer') return tooLongToSay(command.text);
  if (command.kind === 'cancel') return tooLongToSay(command.reason ?? '');
  if (command.kind === 'answer') return tooLongAnswer(command.answer);
  if (command.kind === 'event') return tooLong(JSON.stringify(command.event).length, MAX_TEXT_CHARS);
  return tooLong(JSON.stringify(command.output).length, MAX_OUTPUT_CHARS);
}

function tooLongAnswer(answer: Answer | SignalAnswer): UndeliveredError | undefined {
  const { note = '', reason = '' } = answer.how === 'signal' ? {} : answer;
  return tooLong(Math.max(note.length, reason.length), MAX_NOTE_CHARS) ?? tooLongToSay(JSON.stringify(answer));
}

function tooLong(length: number, most: number): UndeliveredError | undefined {
  if (length <= most) return undefined;
  return new UndeliveredError(`a message to a run may have up to ${most} characters, and this one has ${length}`);
}

/** Returns a command as it is stored: with the version that brought its kind, if that is not the first. */
export function versioned(command: Command): Command & { readonly v?: number } {
  const v = kinds[command.kind];
  return v > 1 ? { v, ...command } : command;
}

/**
 * Reads a stored command of a run.
 * @returns `unknown` for a kind that only a newer version knows: leave it in the inbox
 * @throws {CHECKPOINT_CORRUPT}
 */
export function parseCommand(value: unknown): Command | UnknownCommand {
  if (isCommand(value)) {
    const { v: _, ...command } = value as Command & { v?: unknown };
    return command;
  }
  const { id, v } = isObject(value) ? value : {};
  if (isId(id) && isCount(v) && Number(v) > COMMAND_VERSION) {
    return { id, kind: 'unknown', v: Number(v) };
  }
  throw new CheckpointCorruptError('a stored command is damaged');
}

function isCommand(value: unknown): value is Command {
  if (!isObject(value) || !isId(value.id)) return false;
  const { kind } = value;
  if (kind === 'cancel') return isOptionalText(value.reason);
  if (kind === 'steer') {
    const isSaid = typeof value.text === 'string' && value.text.trim() !== '';
    const isTold = value.children === undefined || typeof value.children === 'boolean';
    return isSaid && isTold && isOptionalText(value.messageId) && isBy(value.by);
  }
  if (kind === 'answer') return isId(value.waitId) && isAnswer(value.answer) && isBy(value.by);
  if (kind === 'event') return isMachineEvent(value.event);
  if (kind !== 'child-ended') return false;
  const isOutput = hasTexts(value, ['childRunId', 'callId']) && hasTexts(value.output, ['type']);
  const isCounted = value.treeRuns === undefined || isCount(value.treeRuns);
  return isOutput && isCounted && (value.usage === undefined || isUsage(value.usage));
}

const isId = (id: unknown): id is string => typeof id === 'string' && id !== '' && id.length <= MAX_ID_CHARS;
const isOptionalText = (text: unknown) => text === undefined || typeof text === 'string';
const isBy = (by: unknown) => by === undefined || isPerson(by);

/** Returns whether a value is a person, with an id and a name of a length that a record can hold. */
export function isPerson(value: unknown): value is Person {
  const isShort = (text: unknown) => typeof text === 'string' && text.length <= MAX_PERSON_CHARS;
  return isObject(value) && isShort(value.id) && (value.name === undefined || isShort(value.name));
}

function isSignal(signal: unknown): boolean {
  if (!isObject(signal) || !hasTexts(signal, ['id', 'topic'])) return false;
  return isAmount(signal.untilMs) && (signal.sentAt === undefined || isAmount(signal.sentAt));
}

const hows: readonly unknown[] = ['approve', 'deny', 'answer', 'wake'] satisfies Answer['how'][];

function isAnswer(answer: unknown): boolean {
  if (!isObject(answer)) return false;
  const { how, value, signal } = answer;
  if (how === 'signal') return value !== undefined && isSignal(signal);
  if (!hows.includes(how) || (how === 'answer' && value === undefined)) return false;
  return isOptionalText(answer.note) && isOptionalText(answer.reason) && isOptionalText(answer.digest);
}

/** Where a steered message comes from. */
export interface SteeredBy {
  /** The id under which it was sent to the thread of the run. */
  readonly messageId?: string | undefined;
  /** The person who sent it. */
  readonly by?: Person | undefined;
}

/**
 * Makes the message of a text that reaches a live run. One that was sent to the run's thread carries its id there, so that the
 * end of the run finds which messages it has delivered. Providers ignore options that are not theirs, so the person is named
 * there as well: for who reads the conversation, not for the model.
 */
export function steeredMessage(text: string, { messageId, by }: SteeredBy = {}): Message {
  const pawl = {
    ...(messageId === undefined ? {} : { messageId }),
    ...(by ? { by: { id: by.id, ...(by.name === undefined ? {} : { name: by.name }) } } : {}),
  };
  const named = messageId === undefined && !by ? {} : { providerOptions: { pawl } };
  return enterMessage({ role: 'user', content: [{ type: 'text', text }], ...named });
}

/** Returns the id under which a message was sent to the thread of a live run; undefined for any other message. */
export function messageIdOf({ providerOptions }: Message): string | undefined {
  const pawl = providerOptions?.pawl;
  return isObject(pawl) && typeof pawl.messageId === 'string' ? pawl.messageId : undefined;
}

/** Returns the person who steered a run with a message; undefined if it is not known, or the message is another one. */
export function steeredBy({ providerOptions }: Message): Person | undefined {
  const pawl = providerOptions?.pawl;
  return isObject(pawl) && isPerson(pawl.by) ? pawl.by : undefined;
}
