import { backupStore } from '../../../store/sqlite/index.ts';
import type { CliCommand, CommandContext } from '../../command.ts';
import { isStoreThere } from '../../open/open-store.ts';
import { noStore, placeOf } from '../../open/store-place.ts';
import { exitCodes, Failure, lineOf } from '../../ui/failure.ts';
import { lineFor } from '../../ui/shell-words.ts';

const REDRAW_MS = 100;

/** Runs `pawl backup`: copies a running store into a new file. */
export const backupCommand: CliCommand = async ({ args, output }) => {
  const [target] = args.words;
  if (target === undefined) throw new Failure('`pawl backup` needs the file to make');
  const place = placeOf(args.store);
  if (place.kind === 'postgres') {
    throw new Failure(
      `${place.path} is a store in PostgreSQL: back it up with pg_dump, and restore it with pg_restore`,
    );
  }
  if (!isStoreThere(args.store)) throw noStore(place.path);
  const { takenAt, bytes } = await copyStore(output, place.path, target);
  if (args.json) {
    output.printJson({ store: place.path, backup: target, takenAt: new Date(takenAt).toISOString(), bytes });
    return exitCodes.ok;
  }
  output.say(`${target} has ${place.path} as of ${new Date(takenAt).toISOString()}, ${megabytes(bytes)} MB`);
  output.say(`to restore it: ${lineFor('restore', [target], ' --store restored.db')}`);
  return exitCodes.ok;
};

async function copyStore(output: CommandContext['output'], path: string, target: string) {
  let shownAt = performance.now();
  try {
    return await backupStore({
      path,
      target,
      onProgress: (done, total) => {
        if (performance.now() - shownAt < REDRAW_MS) return;
        shownAt = performance.now();
        output.show(`copied ${megabytes(done)} of ${megabytes(total)} MB`);
      },
    });
  } catch (error) {
    throw new Failure(lineOf(error), { cause: error });
  } finally {
    output.show('');
  }
}

const megabytes = (bytes: number) => (bytes / 1e6).toFixed(1);
