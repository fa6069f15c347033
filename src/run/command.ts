import { CheckpointCorruptError, UndeliveredError } from '../values/errors.ts';
import { isObject } from '../values/json.ts';

/** A command to a run from outside its process. Sent twice with the same `id`, it counts once. */
export type Command =
  | { readonly id: string; readonly kind: 'cancel'; readonly reason?: string }
  | { readonly id: string; readonly kind: 'steer'; readonly text: string; readonly children?: boolean };

/** A command on its way to its run. */
export interface SentCommand {
  readonly runId: string;
  readonly command: Command;
}

/** Most commands that may wait for one run. */
export const MAX_COMMANDS = 1_000;

/** Most cancels that may wait besides. */
const MAX_CANCELS = 24;

/** Most commands of both kinds for one run: an inbox is read up to this number. */
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

/** Longest text of a command, in characters. */
const MAX_TEXT_CHARS = 2 ** 20;

/**
 * Checks a command (cancel, steer) that is about to be sent to a run.
 * @throws {TypeError} for a value that is not a command
 * @throws {UndeliveredError} for a text that is too long
 */
export function checkCommand(command: Command): Command {
  if (!isCommand(command)) {
    throw new TypeError("a command is { id, kind: 'cancel', reason? } or { id, kind: 'steer', text, children? }");
  }
  const tooLong = tooLongToSay(command.kind === 'steer' ? command.text : (command.reason ?? ''));
  if (tooLong) throw tooLong;
  return command;
}

/** Returns the error for a message or reason that is too long for a run, or undefined. */
export function tooLongToSay({ length }: string): UndeliveredError | undefined {
  if (length <= MAX_TEXT_CHARS) return undefined;
  return new UndeliveredError(
    `a message to a run may have up to ${MAX_TEXT_CHARS} characters, and this one has ${length}`,
  );
}

/** Parses a stored command of a run. @throws {CheckpointCorruptError} */
export function parseCommand(value: unknown): Command {
  if (isCommand(value)) return value;
  throw new CheckpointCorruptError('a stored command is damaged');
}

function isCommand(value: unknown): value is Command {
  if (!isObject(value) || typeof value.id !== 'string' || value.id === '' || value.id.length > MAX_ID_CHARS)
    return false;
  if (value.kind === 'cancel') return value.reason === undefined || typeof value.reason === 'string';
  if (value.kind !== 'steer' || typeof value.text !== 'string' || value.text.trim() === '') return false;
  return value.children === undefined || typeof value.children === 'boolean';
}
