import type { FanOutResult, Ranking } from '../../fan-out/index.ts';
import type { CommandContext } from '../command.ts';
import { exitCodes, oneLine } from '../ui/failure.ts';
import { count, dollars } from '../ui/format.ts';
import { PAWL, quoted } from '../ui/shell-words.ts';
import { checkpointIn, hasAnswerFile } from './answer-files.ts';
import { askReportOf } from './ask-report.ts';
import { type AskedQuestion, rootOption } from './question.ts';

/** How a fan-out of the command line ended. */
interface Ended {
  readonly question: AskedQuestion;
  readonly result: FanOutResult;
  readonly isInterrupted: boolean;
  /** The exit code of an interrupted one with a model that was left. */
  readonly leftCode: number;
}

/** Prints the answers of `pawl ask` at its end to stdout, and the next commands to stderr. @returns the exit code */
export function reportEnd(
  { args, output }: CommandContext,
  { question, result, isInterrupted, leftCode }: Ended,
): number {
  const { responses, interrupted, ranking, judgeUsage, saveError } = result;
  if (!args.json && !isInterrupted) output.printText(askReportOf(responses));
  if (ranking && !args.json) sayRanking({ args, output }, ranking);
  if (judgeUsage && !args.json) {
    const cost = judgeUsage.costUsd > 0 ? `, ${dollars(judgeUsage.costUsd)}` : '';
    output.say(`the judge used ${count(judgeUsage.inputTokens + judgeUsage.outputTokens, 'token')}${cost}`);
  }
  if (saveError) output.say(`pawl: the answers could not be stored: ${oneLine(saveError.message)}`);
  if (interrupted) {
    const left = count(responses.filter((each) => each.interrupted).length, 'model');
    output.say(`pawl: ${left} interrupted and saved; continue with: ${goOnWith({ args, output }, question)}`);
    return isInterrupted ? leftCode : exitCodes.failed;
  }
  const failed = responses.filter((each) => !hasAnswerFile(each)).length;
  if (failed > 0) {
    // If the end could not be stored, the checkpoint file still exists.
    const path = result.path === question.path ? question.path : checkpointIn(question.home);
    const command = goOnWith({ args, output }, { ...question, path });
    output.say(`pawl: ${count(failed, 'model')} failed; ${command} asks those that failed again`);
  }
  if (!args.json) sayWhatToApply({ args, output }, { question, result });
  return responses.every(hasAnswerFile) && !saveError ? exitCodes.ok : exitCodes.failed;
}

/** Names the best answer with changes, else the first one. */
function sayWhatToApply({ output }: CommandContext, { question, result }: Pick<Ended, 'question' | 'result'>): void {
  const { responses, ranking } = result;
  const candidates = responses.filter((each) => hasAnswerFile(each) && each.proposedWrites.length > 0);
  const ids = candidates.map(({ modelId }) => modelId);
  const chosen = ranking?.order.find((id) => ids.includes(id)) ?? ids[0];
  if (chosen === undefined) return;
  const option = rootOption(question.home);
  output.say(`see the changes with: ${PAWL} ask diff${option}`);
  output.say(`apply them with: ${PAWL} ask apply ${quoted(chosen)}${option}`);
}

/** Prints the order in which the judge ranked the answers, and its reason, to stderr. */
export function sayRanking({ output }: CommandContext, { order, reason }: Ranking): void {
  output.say(`the judge's order: ${order.map(oneLine).join(', ')}`);
  if (reason !== '') output.say(`because: ${oneLine(reason)}`);
}

/** The command that continues, with the options that it needs again. */
function goOnWith({ args }: CommandContext, { path, home, hasFiles }: AskedQuestion): string {
  const root = args.root === undefined ? '' : ` --root ${quoted(args.root)}`;
  const place = path === checkpointIn(home) ? rootOption(home) : ` ${quoted(path)}${root}`;
  const module = args.module === undefined ? '' : ` --module ${quoted(args.module)}`;
  return `${PAWL} ask --continue${place}${module}${hasFiles ? '' : ' --no-files'}`;
}
