import { statSync } from 'node:fs';
import { basename, dirname, resolve } from 'node:path';
import { type Checkpoint, loadCheckpoint } from '../../fan-out/index.ts';
import type { Arguments } from '../arguments.ts';
import { Failure } from '../ui/failure.ts';
import { PAWL, quoted } from '../ui/shell-words.ts';
import { answerFilesIn, checkpointIn } from './answer-files.ts';
import { idsOf } from './ask-models.ts';

/** The prompt, the models, and the files of the answers. */
export interface AskedQuestion {
  readonly prompt: string;
  /** Empty: all models of the module. */
  readonly ids: readonly string[];
  readonly path: string;
  /** The folder whose `.pawl` has the answers. */
  readonly home: string;
  /** Whether the models can read the files of that folder. */
  readonly hasFiles: boolean;
  /** The unfinished fan-out to continue. */
  readonly unfinished: Checkpoint | null;
  /** The file of answers that has `unfinished`: it must become the checkpoint file again. */
  readonly endedIn?: string;
}

/**
 * Reads the question of `pawl ask` from the command line: its prompt, its models, its folder and its files.
 * @throws {Failure} for invalid arguments
 */
export async function questionOf(args: Arguments): Promise<AskedQuestion> {
  const home = resolve(args.root ?? '.');
  if (!statSync(home, { throwIfNoEntry: false })?.isDirectory()) {
    throw new Failure(`there is no folder ${home}; check --root`);
  }
  if (args.continue) return readLeftOff(args);
  const [word] = args.words;
  if (args.words.length > 1) throw new Failure(`put the prompt in quotes: ${PAWL} ask "…" --models a,b`);
  const prompt = word === '-' ? await promptFromStdin() : (word ?? '');
  if (prompt.trim() === '') {
    const problem = word === '-' ? 'there is nothing on stdin; ' : '';
    throw new Failure(`${problem}\`pawl ask\` needs a prompt: ${PAWL} ask "…" --models a,b (or --continue)`);
  }
  const path = checkpointIn(home);
  const unfinished = await loadCheckpoint(path);
  return { prompt, ids: idsOf(args.models), path, home, hasFiles: !args.noFiles, unfinished };
}

type Place = Pick<AskedQuestion, 'path' | 'home' | 'hasFiles'>;

/** The fan-out that `--continue` continues. */
async function readLeftOff(args: Arguments): Promise<AskedQuestion> {
  if (args.models !== undefined) {
    throw new Failure(`\`${PAWL} ask --continue\` asks the models that were asked before; leave --models out`);
  }
  const place = placeOf(args);
  const unfinished = await loadCheckpoint(place.path);
  const left = unfinished ? { unfinished } : await readFailed(place);
  return { prompt: left.unfinished.prompt, ids: left.unfinished.adapterIds, ...place, ...left };
}

/** A fan-out that ended, although some models failed. */
async function readFailed({ path, home }: Place): Promise<{ unfinished: Checkpoint; endedIn: string }> {
  const endedIn = answerFilesIn(home);
  const ended = path === checkpointIn(home) ? await loadCheckpoint(endedIn) : null;
  if (!ended) throw new Failure(`there is nothing to continue: ${path} is not there`);
  if (ended.responses.some(({ completed }) => !completed)) return { unfinished: ended, endedIn };
  throw new Failure(
    `there is nothing to continue: all models have answered; see the answers with: ${PAWL} ask show${rootOption(home)}`,
  );
}

/** A checkpoint file outside of `.pawl` does not say which folder its models may read. */
function placeOf({ words: [word], root, noFiles }: Arguments): Place {
  const named = word === undefined ? checkpointIn(resolve(root ?? '.')) : resolve(word);
  // The file of answers replaces the checkpoint file, and is never one itself.
  const isUsual = basename(dirname(named)) === '.pawl';
  const beside = isUsual ? dirname(dirname(named)) : dirname(named);
  const path = named === answerFilesIn(beside) ? checkpointIn(beside) : named;
  const hasFiles = !noFiles && (isUsual || root !== undefined);
  return { path, hasFiles, home: hasFiles && root !== undefined ? resolve(root) : beside };
}

/** Returns the option `--root` with which another command uses this folder; '' for the working folder. */
export function rootOption(home: string): string {
  return home === resolve('.') ? '' : ` --root ${quoted(home)}`;
}

/** The most bytes of a prompt: more than any model reads. */
const MAX_BYTES = 16 * 2 ** 20;

/** The prompt `-`: all of stdin. @throws {Failure} if it is too large, or not UTF-8 */
async function promptFromStdin(): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of process.stdin) {
    size += chunk.length;
    if (size > MAX_BYTES) throw new Failure(`stdin has more than ${MAX_BYTES} bytes, which is too much for a prompt`);
    chunks.push(chunk);
  }
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.concat(chunks));
  } catch (error) {
    throw new Failure('stdin is not UTF-8 text, which a prompt must be', { cause: error });
  }
}
