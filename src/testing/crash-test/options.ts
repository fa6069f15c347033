import type { Agent } from '../../agent/agent.ts';
import type { OlderModel } from '../../model/adapt-model.ts';
import type { Model } from '../../model/port.ts';
import { modelOf } from '../../model/tier.ts';
import type { CheckpointStore } from '../../store/port.ts';
import type { Tool } from '../../tool/define-tool.ts';
import { toolboxOf } from '../../tool/toolbox.ts';
import { toErrorData } from '../../values/error-data.ts';
import type { Workflow } from '../../workflow/workflow.ts';
import { agentOfWorkflow } from '../../workflow/workflow.ts';
import type { CrashTestAnswers, CrashTestEvents } from './person.ts';
import type { CrashTestExecutorOptions } from './process.ts';

/** What to crash. */
export interface CrashTestOptions {
  /** The agent to crash, with its `prompt` and its `model`; or a `workflow`, with its `input`. */
  readonly agent?: Agent;
  readonly prompt?: string;
  readonly workflow?: Workflow;
  readonly input?: unknown;
  /**
   * Makes the model of one process, for all tiers, and in place of the models that agents have of their own. It is called in the run without a crash. Later processes get the same
   * replies again, and use a model of their own only for new requests.
   */
  readonly model?: () => Model | OlderModel;
  /** Tools that the agent names. They and the agent's own tools really run in every history: use doubles. */
  readonly tools?: readonly Tool[];
  /** Opens the same storage again, as the next process would. Default: one memoryStore. */
  readonly store?: () => CheckpointStore | Promise<CheckpointStore>;
  /** The host's other settings of its executors. */
  readonly executor?: CrashTestExecutorOptions;
  /**
   * Answers the open waits of the run and its children as a person outside of its processes: each answer is sent twice, and once
   * more when its wait is over. It is called again for a wait that still needs an answer, for example another vote. Where it
   * returns undefined the time of the wait passes at once. A run that waits without an end breaks promise (a).
   */
  readonly answers?: CrashTestAnswers;
  /**
   * Of a workflow: sends machine events from outside of its processes. It is called when the run rests, before any wait is answered and
   * any time passes. What it returns is sent twice under one id, and once more before the next process begins. It needs a store with
   * an inbox.
   */
  readonly events?: CrashTestEvents;
  /** The most histories with one crash; default 300. If there are more boundaries, they are evenly thinned out. */
  readonly limit?: number;
  /** The most histories with a second crash while the run is being recovered; default 100, 0 = none. */
  readonly doubleCrashes?: number;
  /** The time limit of one process, ms; default 10,000. */
  readonly lifeMs?: number;
  /** Called after each history; its errors are ignored. */
  readonly onHistory?: (progress: { readonly played: number; readonly total: number }) => void;
}

/** Checks the options of crashTest. @throws {TypeError} if an option is invalid */
export function checkCrashTest(options: CrashTestOptions): void {
  const { workflow, model, tools = [], store, limit, doubleCrashes, lifeMs, answers, events } = options ?? {};
  const agent = workflow === undefined ? options?.agent : agentOfWorkflow(workflow);
  if (typeof agent?.id !== 'string' || typeof agent.instructions !== 'string') {
    throw wrong(workflow ? 'workflow must be made with defineWorkflow' : 'agent must be made with defineAgent');
  }
  if (!workflow) {
    const { prompt } = options;
    if (typeof prompt !== 'string' || prompt === '') throw wrong('prompt must be a text that is not empty');
    if (typeof model !== 'function') throw wrong('model must be a function that makes the model of one process');
  }
  if (store !== undefined && typeof store !== 'function') {
    throw wrong('store must be a function that opens the same storage each time: store: () => store');
  }
  if (answers !== undefined && typeof answers !== 'function') {
    throw wrong('answers must be a function that returns the answer to a wait: answers: () => ({ how: "approve" })');
  }
  if (events !== undefined && (typeof events !== 'function' || !workflow)) {
    throw wrong(
      'events must be a function, beside a workflow, that returns the next machine event: events: () => ({ type: "cancel" })',
    );
  }
  for (const [name, value, least] of [
    ['limit', limit, 1],
    ['doubleCrashes', doubleCrashes, 0],
  ] as const) {
    if (value === undefined || (Number.isInteger(value) && value >= least)) continue;
    throw wrong(`${name} must be a whole number >= ${least}, not ${String(value)}`);
  }
  if (lifeMs !== undefined && !(lifeMs > 0)) throw wrong(`lifeMs must be a number above 0, not ${String(lifeMs)}`);
  try {
    toolboxOf(agent.tools, tools);
    if (model) modelOf(model(), 'the answer of model()');
  } catch (error) {
    throw wrong(toErrorData(error).message, error);
  }
}

/** Returns the TypeError for an invalid option of crashTest. */
export function wrong(what: string, cause?: unknown): TypeError {
  return new TypeError(`crashTest: ${what}`, cause === undefined ? {} : { cause });
}
