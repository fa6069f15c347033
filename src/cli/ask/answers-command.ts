import { join, resolve } from 'node:path';
import { applyWrites, loadCheckpoint, type ModelResponse, rewind, toModelResponse } from '../../fan-out/index.ts';
import type { Command, CommandContext } from '../command.ts';
import { exitCodes, Failure, oneLine } from '../failure.ts';
import { quoted } from '../store-place.ts';
import { printDiff } from './diff.ts';

const verbs = ['apply', 'diff', 'rewind'] as const;

/** Whether these words are about the last answers, and no prompt. */
export function isAboutAnswers(words: readonly string[]): boolean {
  return verbs.some((verb) => verb === words[0]);
}

/** `pawl ask apply <model>`, `pawl ask diff [model]`, `pawl ask rewind`. */
export const answersCommand: Command = async (context) => {
  const [verb, model] = context.args.words;
  const root = resolve(context.args.root ?? '.');
  if (verb === 'rewind') return takeBack(context, root);
  const answers = await answersOf(root);
  return verb === 'apply' ? apply(context, { root, answers, model }) : diff(context, { root, answers, model });
};

interface Chosen {
  readonly root: string;
  readonly answers: readonly ModelResponse[];
  readonly model: string | undefined;
}

async function apply(context: CommandContext, { root, answers, model }: Chosen): Promise<number> {
  if (model === undefined) {
    throw new Failure(`whose changes? pawl ask apply <model>, one of ${namesOf(withWrites(answers))}`);
  }
  const answer = named(answers, model);
  if (answer.proposedWrites.length === 0) throw new Failure(`${answer.modelId} proposes no changes`);
  const { files } = await applyWrites(answer, { root });
  return told(context, { model: answer.modelId, files }, () => {
    for (const { path, change } of files) context.output.print(`${change} ${oneLine(path)}`);
    context.output.say(`take them back with: pawl ask rewind${rootOption(context)}`);
  });
}

async function diff(context: CommandContext, { root, answers, model }: Chosen): Promise<number> {
  const chosen = model === undefined ? withWrites(answers) : [named(answers, model)];
  if (chosen.length === 0) context.output.say('no model proposes changes');
  for (const answer of chosen) await printDiff(context, { root, answer, isOnly: chosen.length === 1 });
  return exitCodes.ok;
}

async function takeBack(context: CommandContext, root: string): Promise<number> {
  if (context.args.words.length > 1)
    throw new Failure('`pawl ask rewind` takes back what was applied last; it takes no model');
  const { files } = await rewind(root);
  return told(context, { files }, () => {
    for (const { path, change } of files) context.output.print(`${change} ${oneLine(path)}`);
  });
}

function told({ args, output }: CommandContext, result: object, tell: () => void): number {
  if (args.json) output.print(JSON.stringify(result));
  else tell();
  return exitCodes.ok;
}

/** The answers of the last fan-out in this folder, or of one that still waits for some of them. */
async function answersOf(root: string): Promise<readonly ModelResponse[]> {
  const found = await loadCheckpoint(join(root, '.pawl', 'answers.json'));
  if (found) return found.responses.map(toModelResponse);
  const unfinished = await loadCheckpoint(join(root, '.pawl', 'ask.json'));
  const todo = unfinished
    ? 'some models have not answered yet: pawl ask --continue'
    : 'ask first: pawl ask "…" --models a,b';
  throw new Failure(`there are no answers in ${root}; ${todo}`);
}

/** By its whole id, or by a part that only one has. */
function named(answers: readonly ModelResponse[], model: string): ModelResponse {
  const exact = answers.find(({ modelId }) => modelId === model);
  const similar = answers.filter(({ modelId }) => modelId.includes(model));
  const [only] = similar;
  if (exact) return exact;
  if (only && similar.length === 1) return only;
  const problem = similar.length > 1 ? 'is more than one of' : 'is none of';
  throw new Failure(`${quoted(model)} ${problem} the models that answered: ${namesOf(answers)}`);
}

function withWrites(answers: readonly ModelResponse[]): readonly ModelResponse[] {
  return answers.filter(({ proposedWrites }) => proposedWrites.length > 0);
}

function namesOf(answers: readonly ModelResponse[]): string {
  return answers.map(({ modelId }) => oneLine(modelId)).join(', ') || 'none';
}

function rootOption({ args }: CommandContext): string {
  return args.root === undefined ? '' : ` --root ${quoted(args.root)}`;
}
