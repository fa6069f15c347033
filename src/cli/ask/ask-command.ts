import { rename } from 'node:fs/promises';
import { type FanOutOptions, fanOut } from '../../fan-out/index.ts';
import { hasCode, toErrorData } from '../../values/error-data.ts';
import type { CliCommand, CommandContext } from '../command.ts';
import { countOf, lengthOf } from '../option-values.ts';
import { Interruption } from '../ui/ctrl-c.ts';
import { Failure } from '../ui/failure.ts';
import { loggerOf } from '../ui/warnings.ts';
import { answersCommand, isAboutAnswers } from './answers-command.ts';
import { reportEnd } from './ask-ending.ts';
import { type AskModels, modelsToAsk } from './ask-models.ts';
import { watchFor } from './ask-watch.ts';
import { type AskedQuestion, questionOf } from './question.ts';

/** Runs `pawl ask`: asks several models the same prompt at once, and prints their answers. */
export const askCommand: CliCommand = async (context) => {
  try {
    if (!context.args.continue && isAboutAnswers(context.args.words)) return await answersCommand(context);
    const question = await questionOf(context.args);
    const models = await modelsToAsk(context.args, question.ids);
    return await ask(context, question, models);
  } catch (error) {
    // The message about a damaged file says what to do; the usual advice is about records of runs.
    if (hasCode(error, 'CHECKPOINT_CORRUPT')) throw new Failure(toErrorData(error).message, { cause: error });
    throw error;
  }
};

async function ask(context: CommandContext, question: AskedQuestion, models: AskModels): Promise<number> {
  const { output } = context;
  const interruption = new Interruption(output);
  const leaving = new AbortController();
  interruption.aborts(leaving);
  const ids = Object.keys(models.models);
  const { prompt, path, unfinished, endedIn } = question;
  const limits = limitsOf(context);
  const watch = watchFor(context, { prompt, ids, path, before: unfinished?.responses ?? [] });
  leaving.signal.addEventListener('abort', () => watch.leaving());
  try {
    // Atomic: at any moment, also after a crash, the answers are in one of the two places.
    if (endedIn !== undefined) await rename(endedIn, path);
    const result = await fanOut({
      ...models,
      ...limits,
      prompt,
      path,
      // A person who asks again wants new answers.
      fresh: true,
      ...(question.hasFiles ? { root: question.home } : {}),
      signal: leaving.signal,
      logger: loggerOf(context.output),
      onEvent: (id, event) => watch.heed(id, event),
      onTurn: (snapshot) => watch.turned(snapshot),
      onResponse: (response) => watch.ended(response),
    });
    watch.end(result);
    const { isRequested: isInterrupted, exitCode: leftCode } = interruption;
    return reportEnd(context, { question, result, isInterrupted, leftCode });
  } finally {
    watch.close();
    interruption.stop();
  }
}

function limitsOf({ args }: CommandContext): Pick<FanOutOptions, 'deadlineMs' | 'maxSteps'> {
  return {
    ...(args.deadline === undefined ? {} : { deadlineMs: lengthOf('deadline', args.deadline) }),
    ...(args.steps === undefined ? {} : { maxSteps: countOf('steps', args.steps, 'turns') }),
  };
}
