import type { Agent } from '../../../agent/agent.ts';
import { isLeftFor } from '../../../run/finalize.ts';
import { childOfCall, idempotencyKeyOf } from '../../../run/identity.ts';
import type { RunResult } from '../../../run/result.ts';
import type { ToolWait } from '../../../tool/call-waits.ts';
import type { ToolContext } from '../../../tool/define-tool.ts';
import { ReadyOutput } from '../../../tool/output.ts';
import { holdKey } from '../../../tool/run-tool.ts';
import { backoffMs, pause } from '../../../values/backoff.ts';
import { policyOf } from '../../../values/error-codes.ts';
import { type ErrorData, toErrorData } from '../../../values/error-data.ts';
import { CancelledError, ShutdownError } from '../../../values/errors.ts';
import type { ToolOutput } from '../../../values/message.ts';
import { isWorkflow } from '../../../workflow/program.ts';
import type { ActiveRun } from '../active-run.ts';
import { isStoreRefusal } from '../record/recording.ts';
import { giveBack, isStoredHere } from '../record/setup-fault.ts';
import { sliceEndOf, yieldTree } from '../slice.ts';
import { childOutput } from '../waits/child-end.ts';

/** The first pause before a child is started again; it doubles up to a third of a lease. */
const FIRST_RETRY_MS = 250;

/** A call that begins a run. */
interface Call {
  readonly agent: Agent;
  readonly prompt: string;
  /** Of a workflow that is called. */
  readonly input?: unknown;
  readonly context: ToolContext;
}

/** The run that a call begins. */
interface Task extends Call {
  readonly runId: string;
  readonly depth: number;
}

/**
 * Runs a child agent for a tool call, and returns its end as the result of the call: its answer, or the error text of a child
 * that did not succeed, with its output so far. The parent's model decides. A child that rests makes the call wait.
 */
export async function answerOfChild(run: ActiveRun, call: Call): Promise<unknown> {
  const { context } = call;
  const depth = (run.seed.depth ?? 0) + 1;
  const { maxDepth, maxTreeRuns } = run.services.config.defaults;
  if (depth > maxDepth) throw new Error(`agents may be nested ${maxDepth} deep (maxDepth): this one is not started`);
  // A repeated call has been counted, and its child may have begun: then it continues, however many others there are.
  if (context.attempt === 1) run.tree.add(maxTreeRuns);
  const task = { ...call, depth, runId: childIdOf(run, context) };
  const ended = await endOf(run, task);
  if (ended === undefined) return holdCall(task);
  return new ReadyOutput(ended);
}

/** Ends the execution of a call whose child rests: the call waits until the end of the child comes as a command. */
function holdCall({ context, runId: childRunId }: Task): Promise<never> {
  (context as HoldingContext)[holdKey]?.({ kind: 'child', childRunId });
  return new Promise(() => {});
}

/** Ends the execution of a call whose child was left at the end of its slice: the run of the call leaves as well. */
function leaveWith({ context }: Task): Promise<never> {
  (context as HoldingContext)[holdKey]?.({ kind: 'left-child' });
  return new Promise(() => {});
}

type HoldingContext = ToolContext & { readonly [holdKey]?: (request: ToolWait['request']) => void };

/**
 * Waits for a child that another process has: that process is dead, or about to release it. A child that was interrupted here
 * continues, unless the executor shuts down: then there is no answer, and the parent is left as well. While the store refuses
 * its start it is started again: the record of a child that has begun must not be left behind.
 * @returns undefined if the child rests
 */
async function endOf(run: ActiveRun, task: Task): Promise<ToolOutput | undefined> {
  const { services, signal } = run;
  const { clock, defaults, onSaveError } = services.config;
  const maxMs = defaults.leaseMs / 3;
  for (let retry = 1; ; retry++) {
    const told = run.resources.endedChildren?.get(task.runId);
    if (told) return told;
    const { result, child } = await runOnce(run, task);
    const fault = child?.startFacts.setupFault;
    // The model of this run would read an error that only this process has.
    if (fault && run.isDurable && isStoredHere(run) && !signal.aborted) {
      giveBack(run, fault);
      return leaveWith(task);
    }
    if (isRefusedByBudget(run, result)) {
      run.send({ type: 'run.leave', cause: result.error });
      return leaveWith(task);
    }
    if (result.status === 'waiting')
      return signal.aborted
        ? childOutput(task.agent.id, result, readsOf(run))
        : run.resources.endedChildren?.get(task.runId);
    const isSliced = result.error?.code === 'RUN_SLICED';
    if (isSliced && sliceEndOf(run)) return leaveWith(task);
    const isAway = child?.life.isRefused && isStoreRefusal(child, result.error);
    const isRefused = onSaveError.then === 'wait' && isAway;
    if (signal.aborted || !(isRefused || isSliced || isUnfinished(result)))
      return childOutput(task.agent.id, result, readsOf(run));
    if (isRefused) await pause(backoffMs(retry, { firstMs: FIRST_RETRY_MS, maxMs }), clock, signal);
    else if (services.isShutDown) await pause(Number.POSITIVE_INFINITY, clock, signal);
    else if (!isSliced && result.status !== 'interrupted') await pause(maxMs, clock, signal);
  }
}

/** The record of the child stands: it continues with this run, once the limit is raised. */
function isRefusedByBudget(run: ActiveRun, result: RunResult): result is RunResult & { error: ErrorData } {
  const isLeft = result.status === 'interrupted' && result.error.code === 'BUDGET_EXCEEDED';
  return isLeft && run.isDurable && isStoredHere(run) && !run.signal.aborted;
}

function isUnfinished({ status, durable, error }: RunResult): boolean {
  const isElsewhere = policyOf(error?.code)?.ownership !== undefined;
  return isElsewhere || (error?.code === 'ERR_SHUTDOWN' && (durable || status !== 'interrupted'));
}

interface Attempt {
  readonly result: RunResult;
  readonly child: ActiveRun | undefined;
}

/** A workflow reads the whole result of what it calls. */
function readsOf({ agent }: ActiveRun): 'result' | undefined {
  return isWorkflow(agent) ? 'result' : undefined;
}

async function runOnce(run: ActiveRun, { agent, prompt, input, context, depth, runId }: Task): Promise<Attempt> {
  const { services, signal, seed, tree } = run;
  const { callerId, channelId, guildId, inputs } = context.invocation;
  const reads = readsOf(run);
  const parent = { runId: run.runId, callId: context.callId, rootRunId: tree.rootRunId, ...(reads ? { reads } : {}) };
  // A list by labels finds the whole tree.
  const labels = run.progress?.labels ?? {};
  const same = { runId, callerId, channelId, guildId, parentRunId: run.runId, labels };
  const invocation = isWorkflow(agent) ? { ...same, input } : { ...same, prompt, inputs };
  // No code would read its answer.
  signal.throwIfAborted();
  const controller = new AbortController();
  let joined: ActiveRun | undefined;
  const follow = () => {
    controller.abort(forChild(signal.reason));
    joined?.stop(controller.signal.reason);
  };
  signal.addEventListener('abort', follow);
  try {
    const { maxAttempts } = seed;
    const options = { signal: controller.signal };
    // The end of this run has cancelled the child; its retry makes the call again.
    const isRetry = run.progress?.retries !== undefined;
    const call = { invocation, options, parent, depth, maxAttempts, isRetry, effects: run.progress?.effects };
    const started = await tree.begin(() => services.startChild(agent, call), signal);
    const child = services.runBehind(started.actor);
    if (child) run.resources.addChild(child);
    run.outbox.look();
    // It may wait already.
    run.waits.look();
    // It was taken up by itself, and does not follow the signal of this start.
    if (started.accepted === 'joined') joined = child;
    if (signal.aborted) follow();
    const sliceEnd = sliceEndOf(run);
    if (child && sliceEnd) yieldTree(child, sliceEnd);
    void child?.life.progressed.promise.then(() => run.send({ type: 'run.progressed' }));
    try {
      return { result: await started.result, child };
    } finally {
      if (child) run.resources.removeChild(child);
      run.waits.look();
    }
  } finally {
    signal.removeEventListener('abort', follow);
  }
}

/**
 * If another process will continue the parent, it must find the children: they are left as their parent is. Otherwise they are
 * cancelled, for every end of the parent: a child was not killed, and had no deadline of its own.
 */
function forChild(reason: unknown): unknown {
  if (isLeftFor(reason)) return new ShutdownError('the parent run is left for another process', { cause: reason });
  return new CancelledError(`the parent run was stopped: ${toErrorData(reason).message}`);
}

/** The id of the run that a call begins. A call that an older version began has its child under the id of that version. */
function childIdOf({ born }: ActiveRun, { callId, idempotencyKey }: ToolContext): string {
  const hasOldKey = idempotencyKey === idempotencyKeyOf(born, { callId, hasOldKey: true });
  return childOfCall(born, hasOldKey ? { callId, hasOldKey } : { callId });
}
