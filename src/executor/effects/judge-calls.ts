import type { JudgeInput } from '../../../machines/actors.ts';
import type { OpenCall } from '../../run/open-step.ts';
import type { Wait } from '../../run/waits/wait.ts';
import type { Judgement } from '../../run/waits/wait-rules.ts';
import type { ActiveRun } from '../run/active-run.ts';
import { judgeCall } from '../run/waits/judge-call.ts';

/**
 * Most characters of the questions and facts of one step: the head of the record holds them, and is written with each save. The
 * persons see the input alone for calls after that.
 */
const MAX_WORDS_CHARS = 1_048_576;

/** Judges each call of a step before it opens, all at the same time. Never rejects. */
export async function judgeCalls({ progress, phase = 0 }: JudgeInput, run: ActiveRun): Promise<readonly Judgement[]> {
  const tools = run.resources.loops[phase]?.toolbox.tools;
  // Other calls of a workflow are under way, or were judged before they waited.
  const isNew = ({ attempt, allowed }: OpenCall) => !progress.workflow || (attempt === 0 && !allowed);
  const planned = (progress.openStep?.calls ?? []).filter((call) => call.state === 'planned' && isNew(call));
  const judged = await Promise.all(
    planned.map((call) => judgeCall(run, { progress, call, tool: tools?.get(call.name), phase })),
  );
  let room = MAX_WORDS_CHARS;
  return judged.map((judgement) => {
    if (judgement.verdict !== 'ask') return judgement;
    room -= charsOf(judgement.wait);
    return room >= 0 ? judgement : { ...judgement, wait: withoutWords(judgement.wait) };
  });
}

function charsOf(wait: Wait): number {
  if (wait.kind !== 'approval') return 0;
  return (wait.prompt ?? '').length + (wait.detail === undefined ? 0 : JSON.stringify(wait.detail).length);
}

function withoutWords(wait: Wait): Wait {
  if (wait.kind !== 'approval') return wait;
  const { prompt: _, detail: __, ...rest } = wait;
  return rest;
}
