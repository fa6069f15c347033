import { join } from 'node:path';
import {
  loadCheckpoint,
  type ModelResponse,
  type Ranking,
  snapshotFromPartial,
  toModelResponse,
} from '../../fan-out/index.ts';
import { Failure } from '../ui/failure.ts';
import { PAWL } from '../ui/shell-words.ts';

/** Returns the path of the checkpoint file of `pawl ask` in a folder, `.pawl/ask.json`. */
export function checkpointIn(home: string): string {
  return join(home, '.pawl', 'ask.json');
}

/** Returns the path of the file in which a folder keeps the answers of `pawl ask`, `.pawl/answers.json`. */
export function answerFilesIn(home: string): string {
  return join(home, '.pawl', 'answers.json');
}

/** The answers to the newest prompt in a folder, so far. */
export interface LastAnswers {
  readonly prompt: string;
  /** One for each model, in their order. */
  readonly responses: readonly ModelResponse[];
  readonly ranking: Ranking | undefined;
  /** False: there is a checkpoint file, and models without an answer are asked again. */
  readonly isOver: boolean;
}

/**
 * Loads the answers to the newest prompt of `pawl ask` in a folder. Answers to an older prompt do not count.
 * @throws {Failure} if there are no answers @throws {CHECKPOINT_CORRUPT} …
 */
export async function lastAnswersIn(home: string): Promise<LastAnswers> {
  // A fan-out that ends writes the answers before it deletes its checkpoint file.
  const unfinished = await loadCheckpoint(checkpointIn(home));
  const found = unfinished ?? (await loadCheckpoint(answerFilesIn(home)));
  if (!found) throw new Failure(`there are no answers in ${home}; ask first: ${PAWL} ask "…" --models a,b`);
  const { prompt, adapterIds, responses, ranking } = found;
  const ids = new Set([...adapterIds, ...responses.map(({ modelId }) => modelId)]);
  const snapshotOf = (id: string) =>
    responses.find(({ modelId }) => modelId === id) ?? snapshotFromPartial(id, { interrupted: true });
  const all = [...ids].map((id) => toModelResponse(snapshotOf(id)));
  return { prompt, responses: all, ranking, isOver: unfinished === null };
}

/** Returns whether a model has answered the last question: without an error or an interruption. */
export function hasAnswerFile({ error, interrupted }: ModelResponse): boolean {
  return error === undefined && !interrupted;
}
