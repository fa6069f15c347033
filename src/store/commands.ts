import {
  type Command,
  checkCommand,
  MAX_COMMANDS,
  MAX_INBOX_CHARS,
  parseCommand,
  type SentCommand,
  type UnknownCommand,
  versioned,
} from '../run/command.ts';
import { RunNotFoundError, UndeliveredError } from '../values/errors.ts';
import { jsonText } from '../values/json.ts';
import { parseStored } from './encoding/encode.ts';

/** The text that a driver returns for a command whose checksum is wrong. */
export const DAMAGED_TEXT = '';

/** A command as it is stored. */
export interface StoredCommand {
  readonly runId: string;
  readonly id: Command['id'];
  readonly text: string;
  /** Its number: a later command of the same run has a higher one. Drivers with `due` give it. */
  readonly seq?: number | undefined;
  /** When the store took it, wall clock, ms. */
  readonly sentAt?: number | undefined;
}

/** A command with its text as it is stored. */
export interface CommandToSend extends Pick<StoredCommand, 'runId' | 'id' | 'text'> {
  readonly kind: Command['kind'];
}

/**
 * Encodes a command (cancel, steer) as a text to store.
 * @throws {TypeError}
 * @throws {UNDELIVERED}
 * @throws {NOT_JSON}
 */
export function encodeCommand(command: Command): string {
  return jsonText(versioned(checkCommand(command)), 'command');
}

/** Decodes the stored text of a command. @throws {CHECKPOINT_CORRUPT} */
export function decodeCommand(text: string): Command | UnknownCommand {
  return parseCommand(parseStored(text, 'command'));
}

/**
 * Returns a stored command as an inbox shows it: its run, its number and time.
 * @param stored its number and time, if the store has them
 */
export function sentCommand(
  runId: string,
  command: SentCommand['command'],
  { seq, sentAt }: Pick<StoredCommand, 'seq' | 'sentAt'>,
): SentCommand {
  return { runId, command, ...(seq === undefined ? {} : { seq }), ...(sentAt === undefined ? {} : { sentAt }) };
}

/** Returns the error for a command to a run that has no record. */
export function refuseMissing(runId: string): RunNotFoundError {
  return new RunNotFoundError(`run ${runId} has ended, or never began: a command would have no receiver`);
}

/** Returns the error for a command whose text has no room in the inbox of its run. @param chars of the waiting commands */
export function refuseLarge(runId: string, chars: number): UndeliveredError {
  const left = Math.max(0, MAX_INBOX_CHARS - chars);
  return new UndeliveredError(
    `the inbox of run ${runId} has room for ${left} more characters: this command was not taken`,
  );
}

/** Returns the error for a command to a run whose inbox is full. */
export function refuseFull(runId: string): UndeliveredError {
  return new UndeliveredError(`run ${runId} has ${MAX_COMMANDS} commands waiting: this one was not taken`);
}
