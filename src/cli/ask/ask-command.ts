import { existsSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { type Checkpoint, type FanOutOptions, type FanOutResult, fanOut, loadCheckpoint } from '../../fan-out/index.ts';
import type { Logger } from '../../index.ts';
import { toErrorData } from '../../run/error-data.ts';
import { countOf, lengthOf } from '../bounds.ts';
import type { Command, CommandContext } from '../command.ts';
import { exitCodes, Failure, oneLine } from '../failure.ts';
import { count } from '../figures.ts';
import { Interruption } from '../interruption.ts';
import { quoted } from '../store-place.ts';
import { answersCommand, isAboutAnswers } from './answers-command.ts';
import { type AskModels, idsOf, modelsFor } from './ask-models.ts';
import { reportOf } from './ask-report.ts';
import { watchFor } from './ask-watch.ts';

/** `pawl ask`: one prompt for several models, side by side; `apply`, `diff` and `rewind` are about what they answered. */
export const askCommand: Command = async (context) => {
  if (!context.args.continue && isAboutAnswers(context.args.words)) return answersCommand(context);
  const question = await questionOf(context);
  const models = await modelsFor(context.args, question.ids);
  return ask(context, question, models);
};

/** What is asked of whom, and where it is kept. */
interface Question {
  readonly prompt: string;
  /** Empty: all that the module has. */
  readonly ids: readonly string[];
  readonly path: string;
  /** The folder that the models work on, and that has `.pawl`. */
  readonly root: string;
  readonly unfinished: Checkpoint | null;
}

async function questionOf({ args }: CommandContext): Promise<Question> {
  const [word] = args.words;
  const root = resolve(args.root ?? '.');
  if (!existsSync(root)) throw new Failure(`there is no folder ${root}; check --root`);
  if (args.continue) {
    const path = word === undefined ? join(root, '.pawl', 'ask.json') : resolve(word);
    const unfinished = await loadCheckpoint(path);
    if (!unfinished) throw new Failure(`there is nothing to go on with: ${path} is not there`);
    const home = args.root === undefined && word !== undefined ? homeOf(path) : root;
    return { prompt: unfinished.prompt, ids: unfinished.adapterIds, path, root: home, unfinished };
  }
  if (args.words.length > 1) throw new Failure('put the prompt in quotes: pawl ask "…" --models a,b');
  if (word === undefined || word.trim() === '') {
    throw new Failure('`pawl ask` needs a prompt: pawl ask "…" --models a,b (or --continue)');
  }
  const path = join(root, '.pawl', 'ask.json');
  return { prompt: word, ids: idsOf(args.models), path, root, unfinished: await loadCheckpoint(path) };
}

function homeOf(path: string): string {
  const folder = dirname(path);
  return folder.endsWith('.pawl') ? dirname(folder) : folder;
}

async function ask(context: CommandContext, question: Question, models: AskModels): Promise<number> {
  const { args, output } = context;
  const interruption = new Interruption(output);
  const leaving = new AbortController();
  interruption.aborts(leaving);
  const ids = Object.keys(models.models);
  const { prompt, path, unfinished } = question;
  const watch = watchFor(context, { prompt, ids, path, before: unfinished?.responses ?? [] });
  leaving.signal.addEventListener('abort', () => watch.leaving());
  try {
    const result = await fanOut({
      ...models,
      ...limitsOf(context),
      prompt,
      path,
      ...(args.noFiles ? {} : { root: question.root }),
      signal: leaving.signal,
      logger: loggerFor(context),
      onEvent: (id, event) => watch.heed(id, event),
      onTurn: (snapshot) => watch.turned(snapshot),
      onResponse: (response) => watch.ended(response),
    });
    watch.end(result);
    return report(context, { question, result, isInterrupted: interruption.isRequested });
  } finally {
    watch.close();
    interruption.stop();
  }
}

function limitsOf({ args }: CommandContext): Pick<FanOutOptions, 'deadlineMs' | 'maxIterations'> {
  return {
    ...(args.deadline === undefined ? {} : { deadlineMs: lengthOf('deadline', args.deadline) }),
    ...(args.steps === undefined ? {} : { maxIterations: countOf('steps', args.steps, 'turns') }),
  };
}

interface Ended {
  readonly question: Question;
  readonly result: FanOutResult;
  readonly isInterrupted: boolean;
}

/** The answers on stdout; on stderr what can be done now. @returns the exit code */
function report({ args, output }: CommandContext, { question, result, isInterrupted }: Ended): number {
  const { responses, interrupted, ranking, saveError } = result;
  if (!args.json && !isInterrupted) output.print(reportOf(responses));
  if (ranking && !args.json) {
    output.say(`the judge's order: ${ranking.order.map(oneLine).join(', ')}`);
    if (ranking.reason !== '') output.say(`because: ${oneLine(ranking.reason)}`);
  }
  if (saveError) output.say(`pawl: the answers could not be stored: ${oneLine(saveError.message)}`);
  if (interrupted) {
    const left = count(responses.filter((each) => each.interrupted).length, 'model');
    const option = `${pathOption(question)}${args.module === undefined ? '' : ` --module ${quoted(args.module)}`}`;
    const files = args.noFiles ? ' --no-files' : '';
    output.say(`pawl: ${left} left off, and what there is is saved; go on with: pawl ask --continue${option}${files}`);
    return isInterrupted ? exitCodes.interrupted : exitCodes.failed;
  }
  const [chosen] = (ranking?.order ?? responses.map(({ modelId }) => modelId)).filter((id) =>
    responses.some(({ modelId, proposedWrites }) => modelId === id && proposedWrites.length > 0),
  );
  if (chosen !== undefined && !args.json) {
    const option = args.root === undefined ? '' : ` --root ${quoted(args.root)}`;
    output.say(`see the changes with: pawl ask diff${option}`);
    output.say(`apply them with: pawl ask apply ${quoted(chosen)}${option}`);
  }
  const isAnswered = responses.every(({ stopReason }) => stopReason === 'answered');
  return isAnswered && !saveError ? exitCodes.ok : exitCodes.failed;
}

function pathOption({ path, root }: Question): string {
  const usual = join(resolve('.'), '.pawl', 'ask.json');
  if (path === usual) return '';
  return path === join(root, '.pawl', 'ask.json') ? ` --root ${quoted(root)}` : ` ${quoted(path)}`;
}

function loggerFor({ output }: CommandContext): Logger {
  return {
    warn: (message, { error }) => {
      const why = error === undefined ? '' : `: ${toErrorData(error).message}`;
      output.say(oneLine(`pawl: warning: ${message}${why}`));
    },
  };
}
