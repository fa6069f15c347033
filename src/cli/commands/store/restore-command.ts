import { acceptWithoutWal, type RestoreResult, restoreStore } from '../../../store/sqlite/index.ts';
import type { CliCommand, CommandContext } from '../../command.ts';
import { codecFromEnvironment, codecIn } from '../../open/open-store.ts';
import { placeOf, type StorePlace } from '../../open/store-place.ts';
import { exitCodes, Failure, lineOf, oneLine } from '../../ui/failure.ts';
import { count } from '../../ui/format.ts';
import { lineFor } from '../../ui/shell-words.ts';

/** Runs `pawl restore`: makes a new store of a backup, whose runs are parked. */
export const restoreCommand: CliCommand = async (context) => {
  const { args, output } = context;
  if (args.acceptWithoutWal !== undefined) return accept(context, args.acceptWithoutWal);
  const [backup] = args.words;
  if (backup === undefined) throw new Failure('`pawl restore` needs the backup, a file that `pawl backup` made');
  if (args.store === undefined && !process.env.PAWL_STORE)
    throw new Failure('`pawl restore` needs --store <new file>: it never writes over a store');
  const place = placeOf(args.store);
  if (place.kind === 'postgres') {
    throw new Failure(`${place.path} is a store in PostgreSQL: restore it from a dump, with pg_restore or psql`);
  }
  const codec = args.codec === undefined ? await codecFromEnvironment() : await codecIn(args.codec, '--codec');
  const restored = await attempt(() =>
    restoreStore({ backup, path: place.path, codec, resumeReads: args.resumeReads }),
  );
  const takenAt = new Date(restored.takenAt).toISOString();
  if (args.json) output.printJson({ store: place.path, ...restored, takenAt }, 2);
  else tell(output, place, restored);
  return exitCodes.ok;
};

function tell(output: CommandContext['output'], { path, option }: StorePlace, restored: RestoreResult): void {
  const { takenAt, parked, resumed, parkedBefore, unreadable } = restored;
  output.say(`${path} is the store as of ${new Date(takenAt).toISOString()}`);
  if (parked.length > 0) output.say(`${count(parked.length, 'run')} parked with code RESTORED`);
  if (resumed.length > 0) output.say(`${count(resumed.length, 'run')} will continue`);
  if (parkedBefore.length > 0) output.say(`${count(parkedBefore.length, 'run')} parked before the backup`);
  for (const runId of unreadable) output.say(`unreadable: ${oneLine(runId)}`);
  const [first] = parked;
  if (first !== undefined) output.say(`to let one continue: ${lineFor('unpark', [first], option)}`);
}

async function accept({ args, output }: CommandContext, file: string): Promise<number> {
  if (args.words.length > 0) throw new Failure('--accept-without-wal restores no backup; leave the backup out');
  await attempt(async () => acceptWithoutWal(file));
  if (args.json) output.printJson({ store: file, accepted: true });
  else output.say(`${file} opens without its -wal file from now on; steps that were only there are lost`);
  return exitCodes.ok;
}

async function attempt<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw new Failure(lineOf(error), { cause: error });
  }
}
