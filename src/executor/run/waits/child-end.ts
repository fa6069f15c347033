import { childToolPrefixes } from '../../../agent/names.ts';
import type { RunHead } from '../../../record/checkpoint.ts';
import { MAX_OUTPUT_CHARS } from '../../../run/command.ts';
import { isLeftFor } from '../../../run/finalize.ts';
import { bornRunOf, childOfCall, waitIdOf } from '../../../run/identity.ts';
import type { OpenCall } from '../../../run/open-step.ts';
import type { Progress } from '../../../run/progress.ts';
import { toldAnswer } from '../../../run/reply.ts';
import type { ParentCall } from '../../../run/request.ts';
import type { OkOutput, RunOutput } from '../../../run/result.ts';
import { waitsOf } from '../../../run/waits/wait-rules.ts';
import { thrownOutput, toToolOutput } from '../../../tool/output.ts';
import { hasCode } from '../../../values/error-data.ts';
import type { ToolOutput } from '../../../values/message.ts';
import type { ActiveRun, ExecutorServices } from '../active-run.ts';

/** Returns the end of a child run as the result of the call that began it: its answer, or why it has none. */
export function childOutput(agentId: string, ended: RunOutput, reads?: ParentCall['reads']): ToolOutput {
  if (reads === 'result') return wholeOutput(ended);
  if (ended.status === 'ok')
    return toToolOutput(ended.data === undefined ? toldAnswer(ended.output, ended.finishReason) : ended.data, noUrls);
  const why = ended.error ? `: ${ended.error.code}: ${ended.error.message}` : '';
  const rest = ended.output === '' ? '' : `\nIts last words: ${ended.output}`;
  return thrownOutput(new Error(`${agentId} ended with status ${ended.status}${why}${rest}`));
}

/** Without what differs between two processes that read the same end. */
function wholeOutput({ error, ...ended }: RunOutput): ToolOutput {
  if (error) return { type: 'error-json', value: { name: error.name, code: error.code, message: error.message } };
  const { runId, status, output, usage, spend, data, finishReason } = ended as OkOutput;
  const more = {
    ...(spend ? { spend } : {}),
    ...(data === undefined ? {} : { data }),
    ...(finishReason ? { finishReason } : {}),
  };
  return { type: 'json', value: { runId, status, output, usage, ...more } as never };
}

const noUrls = { allowUrls: false } as const;

/** The end of a run that a call of another run may have begun. */
export interface ChildEnd {
  readonly runId: string;
  readonly agentId: string;
  /** As it is kept: redacted. */
  readonly outcome: RunOutput;
  /** Returns the call that began it, if its run waits for this end in its inbox. */
  parent(): ParentCall | undefined;
  /** Returns how many runs its tree has had, as far as it is known. */
  treeRuns(): number | undefined;
}

/**
 * Sends the end of a child to the inbox of its parent, which may rest. A repeated send has the same id, so the parent records
 * it once. A parent without a record has ended, and needs no answer.
 * @throws the store's error: then the record of the child must stay, and the send is repeated at its next start
 */
export async function tellParent(services: ExecutorServices, child: ChildEnd): Promise<void> {
  const { config, registry, inbox, stuck, sweep } = services;
  const { runId } = child;
  const parent = child.parent();
  if (!parent || !config.store?.commands) return;
  const output = sendable(child, parent);
  const id = waitIdOf([runId, 'ended']);
  const ended = { id, kind: 'child-ended', childRunId: runId, callId: parent.callId, output } as const;
  const treeRuns = child.treeRuns();
  const command = treeRuns ? { ...ended, treeRuns } : ended;
  try {
    await config.store.commands.send(parent.runId, command);
  } catch (error) {
    if (hasCode(error, 'RUN_NOT_FOUND')) return;
    throw error;
  }
  if (registry.live(parent.runId)) void inbox.look();
  stuck.retry(parent.runId);
  if (sweep.isOn) void sweep.look();
}

function sendable({ agentId, outcome }: ChildEnd, { reads }: ParentCall): ToolOutput {
  const output = childOutput(agentId, outcome, reads);
  const { length } = JSON.stringify(output);
  if (length <= MAX_OUTPUT_CHARS) return output;
  const why = `its output has ${length} characters as JSON, and a waiting parent takes up to ${MAX_OUTPUT_CHARS}`;
  return thrownOutput(new Error(`${agentId} ended with status ${outcome.status}, but ${why}`));
}

/** Whether a call of a run that is live here waits for this child, and reads its end by itself. */
export function isAwaitedHere(child: ActiveRun): boolean {
  const parent = child.parent && child.services.registry.live(child.parent.runId);
  if (!parent?.resources.children.has(child)) return false;
  const { aborted, reason } = parent.signal;
  return !(aborted && isLeftFor(reason));
}

/** The child runs that the open calls of a run began, as far as they may not have ended. */
export function openChildren(of: Pick<RunHead & Progress, 'meta' | 'birth' | 'openStep' | 'waiting'>) {
  const { openStep, waiting } = of;
  const born = bornRunOf(of);
  const waited = waitsOf({ waiting }).flatMap((wait) => (wait.kind === 'child' ? wait.childRunId : []));
  const begun = (openStep?.calls ?? []).filter(mayHaveChild).map((call) => childOfCall(born, call));
  return [...new Set([...waited, ...begun])];
}

/** A record with an outcome has no open waits, but still the call that waited. */
function mayHaveChild({ name, state, attempt }: OpenCall): boolean {
  return state !== 'done' && attempt > 0 && childToolPrefixes.some((prefix) => name.startsWith(prefix));
}
