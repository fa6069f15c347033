import { resolve } from 'node:path';
import { applyWrites, type ModelResponse, rewind } from '../../fan-out/index.ts';
import type { CliCommand, CommandContext } from '../command.ts';
import { exitCodes, Failure, oneLine } from '../ui/failure.ts';
import { shortened } from '../ui/format.ts';
import { PAWL, quoted } from '../ui/shell-words.ts';
import { hasAnswerFile, type LastAnswers, lastAnswersIn } from './answer-files.ts';
import { sayRanking } from './ask-ending.ts';
import { askReportOf } from './ask-report.ts';
import { printDiff, sayWarnings } from './diff.ts';
import { rootOption } from './question.ts';

const NO_CHANGES = 'no model proposes changes';

/** What a command is about. */
interface Chosen {
  readonly root: string;
  readonly answers: LastAnswers;
  /** As the user names it. */
  readonly model: string | undefined;
}

type Verb = (context: CommandContext, chosen: Chosen) => Promise<number>;
const verbs: ReadonlyMap<string, Verb> = new Map([
  ['show', show],
  ['diff', diff],
  ['apply', apply],
]);

/**
 * Returns whether the words of `pawl ask` name a command about the last answers (show, diff, apply, rewind), not a prompt.
 */
export function isAboutAnswers([word = '']: readonly string[]): boolean {
  return word === 'rewind' || verbs.has(word);
}

/** Runs `pawl ask show|diff|apply|rewind`: prints the last answers, or applies or undoes the writes of one. */
export const answersCommand: CliCommand = async (context) => {
  const [word = '', model] = context.args.words;
  const root = resolve(context.args.root ?? '.');
  const verb = verbs.get(word);
  return verb ? verb(context, { root, answers: await lastAnswersIn(root), model }) : takeBack(context, root);
};

async function show(context: CommandContext, { root, answers, model }: Chosen): Promise<number> {
  const { args, output } = context;
  const chosen = model === undefined ? answers.responses : [named(answers.responses, model)];
  if (args.json) {
    for (const response of chosen) output.printJson(response);
    return exitCodes.ok;
  }
  output.say(`asked: ${shortened(oneLine(answers.prompt), 100)}`);
  output.printText(askReportOf(chosen));
  if (answers.ranking && model === undefined) sayRanking(context, answers.ranking);
  sayWhoIsMissing(context, { root, answers, model });
  return exitCodes.ok;
}

async function apply(context: CommandContext, { root, answers, model }: Chosen): Promise<number> {
  const { output } = context;
  const candidates = withWrites(answers.responses.filter((each) => answers.isOver || hasAnswerFile(each)));
  if (model === undefined && candidates.length === 0) throw new Failure(NO_CHANGES);
  if (model === undefined) {
    throw new Failure(`whose changes? ${PAWL} ask apply <model>, one of ${namesOf(candidates)}`);
  }
  const answer = named(answers.responses, model);
  checkIsOver(root, answers, answer);
  if (answer.proposedWrites.length === 0) throw new Failure(`${oneLine(answer.modelId)} proposes no changes`);
  const { files } = await applyWrites(answer, { root });
  sayIfHalfDone(context, answer);
  return reportResult(context, { model: answer.modelId, files }, () => {
    for (const { path, change } of files) output.print(`${change} ${oneLine(path)}`);
    sayWarnings(output, files);
    output.say(`undo them with: ${PAWL} ask rewind${rootOption(root)}`);
  });
}

async function diff(context: CommandContext, { root, answers, model }: Chosen): Promise<number> {
  const all = answers.responses.filter((each) => answers.isOver || hasAnswerFile(each));
  const chosen = model === undefined ? withWrites(all) : [named(answers.responses, model)];
  if (chosen.length === 0) context.output.say(NO_CHANGES);
  for (const answer of chosen) {
    checkIsOver(root, answers, answer);
    if (answer.proposedWrites.length === 0) context.output.say(`${oneLine(answer.modelId)} proposes no changes`);
    await printDiff(context, { root, answer, isOnly: chosen.length === 1 });
    sayIfHalfDone(context, answer);
  }
  sayWhoIsMissing(context, { root, answers, model });
  return exitCodes.ok;
}

async function takeBack(context: CommandContext, root: string): Promise<number> {
  if (context.args.words.length > 1)
    throw new Failure(`\`${PAWL} ask rewind\` undoes the last apply; it takes no model`);
  const { files } = await rewind(root);
  return reportResult(context, { files }, () => {
    for (const { path, change } of files) context.output.print(`${change} ${oneLine(path)}`);
  });
}

function reportResult({ args, output }: CommandContext, result: object, tell: () => void): number {
  if (args.json) output.printJson(result);
  else tell();
  return exitCodes.ok;
}

/** The proposals of an interrupted model are not complete. */
function checkIsOver(root: string, { isOver }: LastAnswers, answer: ModelResponse): void {
  if (isOver || hasAnswerFile(answer)) return;
  throw new Failure(`${oneLine(answer.modelId)} has not answered yet: ${PAWL} ask --continue${rootOption(root)}`);
}

function sayIfHalfDone({ output }: CommandContext, answer: ModelResponse): void {
  if (hasAnswerFile(answer) || answer.proposedWrites.length === 0) return;
  output.say(`pawl: ${oneLine(answer.modelId)} failed before its answer: its changes may be incomplete`);
}

/** Shown when the command is about all models. */
function sayWhoIsMissing({ output }: CommandContext, { root, answers, model }: Chosen): void {
  const missing = answers.responses.filter((each) => !hasAnswerFile(each));
  if (answers.isOver || model !== undefined || missing.length === 0) return;
  output.say(`pawl: not answered yet: ${namesOf(missing)}; continue with: ${PAWL} ask --continue${rootOption(root)}`);
}

/** Finds a model by its id, or by a part of an id that only one model has. */
function named(answers: readonly ModelResponse[], model: string): ModelResponse {
  const exact = answers.find(({ modelId }) => modelId === model);
  const similar = answers.filter(({ modelId }) => modelId.includes(model));
  const [only] = similar;
  if (exact) return exact;
  if (only && similar.length === 1) return only;
  const problem = similar.length > 1 ? 'matches several of' : 'is not one of';
  throw new Failure(`${quoted(model)} ${problem} the models: ${namesOf(answers)}`);
}

function withWrites(answers: readonly ModelResponse[]): readonly ModelResponse[] {
  return answers.filter(({ proposedWrites }) => proposedWrites.length > 0);
}

function namesOf(answers: readonly ModelResponse[]): string {
  return answers.map(({ modelId }) => oneLine(modelId)).join(', ') || 'none';
}
