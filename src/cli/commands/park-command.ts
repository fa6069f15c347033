import type { InterruptedRun } from '../../index.ts';
import { listedStatus } from '../../record/listed-status.ts';
import { staysParked } from '../../run/fields.ts';
import type { CliCommand, CommandContext } from '../command.ts';
import { controlExecutor } from '../open/control-executor.ts';
import type { RunStore } from '../open/open-store.ts';
import { allRuns, treeInStore } from '../open/stored-runs.ts';
import { exitCodes, Failure, oneLine } from '../ui/failure.ts';
import { lineFor, PAWL } from '../ui/shell-words.ts';
import { wayOn } from './describe-run.ts';
import { withStore } from './obstacle.ts';
import { isForMany, unparkMany } from './unpark-many.ts';

/** Runs `pawl park`: sets a run aside, so that no process continues it. */
export const parkCommand: CliCommand = (context) =>
  change(context, async (store, runId) => {
    await controlExecutor(store).park(runId, context.args.words[1] ?? 'parked by hand');
    const next = `next: ${lineFor('unpark', [runId], store.option)}`;
    return { status: 'parked', text: `parked ${oneLine(runId)}; ${next}` };
  });

/** Runs `pawl unpark`: releases a parked run and resets its attempts. */
export const unparkCommand: CliCommand = (context) => {
  if (isForMany(context.args)) return unparkMany(context);
  return change(context, async (store, runId) => {
    const entries = await allRuns(store);
    const entry = entries.find((each) => each.runId === runId);
    const isParked = !entry || !['interrupted', 'waiting'].includes(listedStatus(entry));
    if (isParked) await controlExecutor(store).unpark(runId);
    const done = isParked ? `unparked ${oneLine(runId)}${warning(entry)}` : `run ${oneLine(runId)} is not parked`;
    const place = entry ? await treeInStore(store, entries).placeOf(entry) : ({ kind: 'own' } as const);
    const takes = isParked && place.kind === 'own' ? 'a running worker that has its agent takes it, or ' : '';
    return { status: 'interrupted', text: `${done}; ${takes}${wayOn(runId, place, store)}` };
  });
};

/** Why the next start may park the run again. */
function warning(entry: InterruptedRun | undefined): string {
  if (!entry || !('code' in entry) || staysParked(entry.code)) return '';
  return '; its next start parks it again, unless its agent has the phases that the run started with';
}

interface Changed {
  readonly status: 'parked' | 'interrupted';
  readonly text: string;
}

async function change(
  { args, output }: CommandContext,
  work: (store: RunStore, runId: string) => Promise<Changed>,
): Promise<number> {
  const [runId] = args.words;
  if (runId === undefined) {
    throw new Failure(`\`pawl ${args.command}\` needs the id of a run; \`${PAWL} list\` lists them`);
  }
  const park = async (store: RunStore) => {
    const { status, text } = await work(store, runId);
    if (args.json) output.printJson({ runId, status });
    else output.say(text);
    return exitCodes.ok;
  };
  return withStore(args, park, runId);
}
