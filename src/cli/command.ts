import type { Arguments } from './arguments.ts';
import type { Output } from './ui/output.ts';

/** What a command gets to work with. */
export interface CommandContext {
  readonly args: Arguments;
  readonly output: Output;
}

/** Does its work and gives the exit code. What it throws becomes one line on stderr. */
export type Command = (context: CommandContext) => Promise<number>;
