import type { Executor, ListedWait } from '../../index.ts';
import { nameOfWait } from '../../run/waits/wait.ts';
import type { Command } from '../command.ts';
import { controlExecutor } from '../open/control-executor.ts';
import { openExistingStore } from '../open/open-store.ts';
import { commandsFor, describeWait } from '../ui/describe-wait.ts';
import { exitCodes, oneLine } from '../ui/failure.ts';
import { count } from '../ui/format.ts';

const PAGE = 500;

/** Runs `pawl waiting`: prints what the runs of a store wait for, and the commands that answer. */
export const waitingCommand: Command = async ({ args, output }) => {
  const store = await openExistingStore(args.store);
  const [runId] = args.words;
  const waits: ListedWait[] = [];
  for await (const wait of allWaits(controlExecutor(store), runId)) {
    waits.push(wait);
    if (args.json) continue;
    output.print(`run ${oneLine(wait.runId)} of ${oneLine(wait.agentId)} waits for ${oneLine(nameOfWait(wait))}`);
    for (const line of describeWait(wait, Date.now())) output.print(`  ${line}`);
    for (const command of commandsFor(wait, store.option)) output.print(`  ${command}`);
  }
  if (args.json) output.printJson({ store: store.path, waits }, 2);
  else output.say(`${count(waits.length, 'open wait')} in ${store.path}`);
  await store.close();
  return exitCodes.ok;
};

/** Iterates over the open waits of all runs; with an id, over those of this run and of the runs below it. */
export async function* allWaits(
  executor: Pick<Executor, 'waiting'>,
  runId?: string,
): AsyncGenerator<ListedWait, void, undefined> {
  // A run that rests meanwhile is listed where it was live, and in the store.
  const seen = new Set<string>();
  for (let after: ListedWait | undefined; ; ) {
    const page = await executor.waiting({ limit: PAGE, ...(after ? { after } : {}) });
    for (const wait of page) {
      const key = `${wait.runId}\n${wait.id}`;
      if (seen.has(key) || (runId !== undefined && ![wait.runId, wait.rootRunId].includes(runId))) continue;
      seen.add(key);
      yield wait;
    }
    after = page.at(-1);
    if (page.length < PAGE) return;
  }
}
