import { randomUUID } from 'node:crypto';
import type { CliCommand } from '../../command.ts';
import { controlExecutor } from '../../open/control-executor.ts';
import type { RunStore } from '../../open/open-store.ts';
import { findWaiting, treeInStore } from '../../open/stored-runs.ts';
import { whatContinues } from '../../open/way-to-resume.ts';
import { exitCodes, Failure, oneLine } from '../../ui/failure.ts';
import { withStore } from '../obstacle.ts';
import { answerValue } from './answer-command.ts';

/** Runs `pawl signal`: sends an event to the run that waits for it, or keeps it for the next one. */
export const signalCommand: CliCommand = async ({ args, output }) => {
  const [name, text] = args.words;
  if (name === undefined || text === undefined)
    throw new Failure('`pawl signal` needs the name of an event, and its value (JSON, or a text)');
  const { key = '', id = randomUUID() } = args;
  return withStore(args, async (store) => {
    const { to } = await controlExecutor(store).signal(name, answerValue(text, {}), { key, id });
    if (args.json) output.printJson({ name, key, id, to: to ?? null });
    else if (to === undefined) output.say(`no run waits for the event ${oneLine(name)}: it is kept for a day`);
    else
      output.say(
        `run ${oneLine(to)} has the event ${oneLine(name)}; ${whatContinues(store, await topRunOf(store, to))}`,
      );
    return exitCodes.ok;
  });
};

/** A child run continues with the run at its top, and only with that one. */
async function topRunOf(store: RunStore, runId: string): Promise<string> {
  const entry = await findWaiting(store, runId);
  const place = entry && (await treeInStore(store, [entry]).placeOf(entry));
  return place?.kind === 'child' ? place.root : runId;
}
