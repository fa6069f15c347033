import type { OptionName } from '../arguments.ts';
import type { CliCommand } from '../command.ts';

/** What the table says of a command. Help prints each line of a text as it is here. */
export interface CommandRow {
  /** The words after the command, as help shows them. One with `…` stands for any number. */
  readonly takes?: string;
  /** The lines of its usage, where `takes` does not say it all. */
  readonly usage?: readonly string[];
  /** How many words it takes, if it is not the number in `takes`. */
  readonly words?: number;
  /** For the list of commands. */
  readonly does: string;
  readonly about: string;
  /** The options that it takes, in the order of its help, with what each means. */
  readonly options: { readonly [Name in OptionName]?: string };
  /** Of its help: what follows the options. */
  readonly more?: string;
  /** Command lines that a person can type. */
  readonly examples: readonly string[];
  /** Imports the command at its use: a list needs no executor. */
  readonly load: () => Promise<CliCommand>;
}

export const STORE = 'the store; else $PAWL_STORE, else .pawl/runs.db';
export const AUDIT = 'keep runs after their end, as of `pawl run`';
