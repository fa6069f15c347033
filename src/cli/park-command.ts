import type { Executor } from '../index.ts';
import { caretakerOf } from './caretaker.ts';
import type { Command, CommandContext } from './command.ts';
import { exitCodes, Failure, lineOf, oneLine } from './failure.ts';
import { openExistingStore, quoted } from './run-store.ts';

/** `pawl park`: sets a run aside, so that nobody takes it up. */
export const parkCommand: Command = (context) => {
  const reason = context.args.words[1] ?? 'parked by hand';
  return change(context, 'parked', (executor, runId) => executor.park(runId, reason));
};

/** `pawl unpark`: gives a parked run back, with all its attempts. */
export const unparkCommand: Command = (context) =>
  change(context, 'unparked', (executor, runId) => executor.unpark(runId));

async function change(
  { args, output }: CommandContext,
  done: 'parked' | 'unparked',
  work: (executor: Executor, runId: string) => Promise<void>,
): Promise<number> {
  const [runId] = args.words;
  if (runId === undefined) {
    throw new Failure(`\`pawl ${args.command}\` needs the id of a run; \`pawl list\` shows those that wait`);
  }
  const store = await openExistingStore(args.store);
  try {
    await work(caretakerOf(store), runId);
  } catch (error) {
    throw new Failure(lineOf(error), { cause: error });
  } finally {
    await store.close();
  }
  const next = done === 'parked' ? 'unpark' : 'resume';
  if (args.json) output.print(JSON.stringify({ runId, status: done === 'parked' ? 'parked' : 'interrupted' }));
  else output.say(`${done} ${oneLine(runId)}; next: pawl ${next} ${quoted(runId)}${store.option}`);
  return exitCodes.ok;
}
