import { resolve } from 'node:path';
import { writeAtomically } from '../../files/atomic-write.ts';
import { diskFiles } from '../../files/file-system.ts';
import { createExecutor } from '../../index.ts';
import { exportRuns, importRuns } from '../../lab/index.ts';
import { hasCode, toErrorData } from '../../values/error-data.ts';
import type { CliCommand } from '../command.ts';
import { codecFromEnvironment, openExistingStore, openStore } from '../open/open-store.ts';
import { exitCodes, Failure, lineOf } from '../ui/failure.ts';
import { withoutKeys } from '../ui/own-secrets.ts';
import { PAWL, quoted } from '../ui/shell-words.ts';

/** Runs `pawl export`: writes recorded runs as lines, to stdout or to a file. */
export const exportCommand: CliCommand = async ({ args, output }) => {
  const { words, out, decrypt } = args;
  if (words.length === 0) throw new Failure(`\`pawl export\` needs the ids of runs; \`${PAWL} list --all\` lists them`);
  const codec = await codecFromEnvironment();
  if (codec && !decrypt)
    throw new Failure(
      'this store is encrypted (PAWL_CODEC), and its runs would be written as plain text: add --decrypt',
    );
  const store = await openExistingStore(args.store, codec);
  try {
    const lines = exportRuns(createExecutor({ store, redact: withoutKeys }), words);
    if (out === undefined) for await (const line of lines) output.printFiled(line.slice(0, -1));
    else await writeLines(resolve(out), lines);
    return exitCodes.ok;
  } catch (error) {
    throw new Failure(lineOf(error), { exitCode: exitCodes.badInput, cause: error });
  } finally {
    await store.close();
  }
};

function writeLines(path: string, lines: AsyncIterable<string>): Promise<void> {
  const temporaryFor = (of: string) => `${of}.${process.pid}.new`;
  return writeAtomically({ files: diskFiles, temporaryFor }, path, async (file) => {
    let at = 0;
    for await (const line of lines) {
      const bytes = Buffer.from(line);
      await file.write(bytes, at);
      at += bytes.length;
    }
  });
}

/** Runs `pawl import`: puts exported runs into a store. */
export const importCommand: CliCommand = async ({ args, output }) => {
  const [file] = args.words;
  if (file === undefined) throw new Failure(`\`pawl import\` needs a file, as \`${PAWL} export --out\` writes it`);
  const store = await openStore(args.store);
  try {
    const report = await importRuns(createExecutor({ store }), resolve(file));
    const { imported, skipped, damaged } = report;
    if (args.json) output.printJson({ store: store.path, ...report });
    else {
      output.print(`imported ${imported.length} into ${store.path}; ${skipped.length} were there already`);
      for (const { message } of damaged) output.say(`pawl: damaged: ${message}`);
    }
    return damaged.length > 0 ? exitCodes.failed : exitCodes.ok;
  } catch (error) {
    throw fileFailure(error, file);
  } finally {
    await store.close();
  }
};

/** The error of a command about a file of runs. */
export function fileFailure(error: unknown, file: string): unknown {
  if (!['ENOENT', 'EISDIR', 'EACCES'].some((code) => hasCode(error, code))) return error;
  return new Failure(`${quoted(file)} cannot be read: ${toErrorData(error).message}`, {
    exitCode: exitCodes.badInput,
    cause: error,
  });
}
