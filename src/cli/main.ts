import { helpFor } from './help/help.ts';
import { lendOwnPackage } from './open/module-resolution.ts';
import { version } from './own-package.ts';
import { type CommandLine, readCommandLine } from './table/command-line.ts';
import { commands } from './table/commands.ts';
import { exitCodeOf, exitCodes, lineOf, pageOfFailure, stackOf } from './ui/failure.ts';
import { Output } from './ui/output.ts';
import { PAWL } from './ui/shell-words.ts';

/** Runs a command line: finds its command, prints its error, sets the exit code. @param argv without node and the script */
export async function main(argv: readonly string[]): Promise<void> {
  const output = new Output();
  process.on('uncaughtException', (error) => void end(output, crashed(output, error)));
  await end(output, await attempt(output, argv));
}

/** An agent module may hold resources open (a pool of connections): the process ends when the work is done. */
async function end(output: Output, exitCode: number): Promise<void> {
  await output.flush();
  process.exit(exitCode === exitCodes.ok ? process.exitCode : exitCode);
}

async function attempt(output: Output, argv: readonly string[]): Promise<number> {
  try {
    return await dispatch(output, readCommandLine(argv));
  } catch (error) {
    complain(output, error);
    return exitCodeOf(error);
  }
}

async function dispatch(output: Output, args: CommandLine): Promise<number> {
  if (args.help) return tell(output, helpFor(args.command));
  if (args.version) return tell(output, version);
  if (!args.command) {
    output.sayText(helpFor(undefined));
    return exitCodes.badInput;
  }
  lendOwnPackage();
  const command = await commands[args.command].load();
  return command({ args, output });
}

function tell(output: Output, text: string): number {
  output.printText(text);
  return exitCodes.ok;
}

function complain(output: Output, error: unknown): void {
  output.say(`pawl: ${lineOf(error)}`);
  output.see(pageOfFailure(error));
  if (process.env.PAWL_DEBUG === '1') output.sayText(stackOf(error));
}

/** An error outside of all runs, for example in a timer of an agent module. The records stay. */
function crashed(output: Output, error: unknown): number {
  complain(output, error);
  output.say(
    `pawl: this error belongs to no run and ends the process; continue interrupted runs with \`${PAWL} resume\``,
  );
  return exitCodes.failed;
}
