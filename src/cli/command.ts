import type { Arguments } from './arguments.ts';
import type { Output } from './ui/output.ts';

/** What a command gets. */
export interface CommandContext {
  readonly args: Arguments;
  readonly output: Output;
}

/** Runs a command and returns its exit code. Its errors become one line on stderr. */
export type CliCommand = (context: CommandContext) => Promise<number>;
