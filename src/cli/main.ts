import { type Arguments, type CommandName, readArguments } from './arguments.ts';
import type { Command } from './command.ts';
import { helpFor } from './help/help.ts';
import { lendOwnPackage } from './open/module-resolution.ts';
import { version } from './own-package.ts';
import { exitCodeOf, exitCodes, lineOf, stackOf } from './ui/failure.ts';
import { Output } from './ui/output.ts';
import { PAWL } from './ui/shell-words.ts';

/** Each command is imported at its use: a list needs no executor. */
const commands: Readonly<Record<CommandName, () => Promise<Command>>> = {
  run: async () => (await import('./commands/run-command.ts')).runCommand,
  list: async () => (await import('./commands/list-command.ts')).listCommand,
  show: async () => (await import('./commands/show-command.ts')).showCommand,
  resume: async () => (await import('./commands/resume-command.ts')).resumeCommand,
  recover: async () => (await import('./commands/resume-command.ts')).recoverCommand,
  work: async () => (await import('./work/work-command.ts')).workCommand,
  cancel: async () => (await import('./commands/control-command.ts')).cancelCommand,
  steer: async () => (await import('./commands/control-command.ts')).steerCommand,
  waiting: async () => (await import('./commands/waits/waiting-command.ts')).waitingCommand,
  approve: async () => (await import('./commands/waits/answer-command.ts')).approveCommand,
  deny: async () => (await import('./commands/waits/answer-command.ts')).denyCommand,
  answer: async () => (await import('./commands/waits/answer-command.ts')).answerCommand,
  signal: async () => (await import('./commands/waits/signal-command.ts')).signalCommand,
  park: async () => (await import('./commands/park-command.ts')).parkCommand,
  unpark: async () => (await import('./commands/park-command.ts')).unparkCommand,
  doctor: async () => (await import('./commands/store/doctor-command.ts')).doctorCommand,
  prune: async () => (await import('./commands/store/prune-command.ts')).pruneCommand,
  backup: async () => (await import('./commands/store/backup-command.ts')).backupCommand,
  restore: async () => (await import('./commands/store/restore-command.ts')).restoreCommand,
  stats: async () => (await import('./commands/store/stats-command.ts')).statsCommand,
  studio: async () => (await import('./commands/studio-command.ts')).studioCommand,
  ask: async () => (await import('./ask/ask-command.ts')).askCommand,
  demo: async () => (await import('./demo/demo-command.ts')).demoCommand,
};

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
    return await dispatch(output, readArguments(argv));
  } catch (error) {
    complain(output, error);
    return exitCodeOf(error);
  }
}

async function dispatch(output: Output, args: Arguments): Promise<number> {
  if (args.help) return tell(output, helpFor(args.command));
  if (args.version) return tell(output, version);
  if (!args.command) {
    output.sayText(helpFor(undefined));
    return exitCodes.badInput;
  }
  lendOwnPackage();
  const command = await commands[args.command]();
  return command({ args, output });
}

function tell(output: Output, text: string): number {
  output.printText(text);
  return exitCodes.ok;
}

function complain(output: Output, error: unknown): void {
  output.say(`pawl: ${lineOf(error)}`);
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
