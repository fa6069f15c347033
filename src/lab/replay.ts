import { recordedCompactor } from '../compaction/port.ts';
import {
  type Agent,
  createExecutor,
  type Defaults,
  type Model,
  type ModelChoice,
  type Models,
  memoryStore,
  type Skill,
} from '../index.ts';
import { isObject } from '../values/json.ts';
import { checkKeys, checkWord, type KnownKeys, kindOf } from '../values/known-options.ts';
import type { RecordedRun } from './recorded-run.ts';
import { ReplayedRun } from './replayed-run.ts';
import { type ReplayReport, reportOf } from './report.ts';
import { type Double, mute, standInFor } from './stand-ins.ts';

/** The options of `replay`. */
export interface ReplayOptions {
  /** The agent that works through the recorded run: the one of the time, or its next version. */
  readonly agent: Agent;
  /** Agents and skills that it may call. Its model reads their descriptions; their calls are answered from the recording. */
  readonly agents?: readonly Agent[];
  readonly skills?: readonly Skill[];
  /**
   * Who answers in the model's place; absent: the recording does, and no model is asked. A language model answers for the agent and
   * for its phases; `models` as of an executor are asked as the agent names them.
   */
  readonly model?: Exclude<ModelChoice, string> | Models;
  /**
   * How calls are answered: from the recording by name and input, else by the next recorded call of that name (`recorded`, the
   * default); by name and input only (`strict`); or doubles by name, beside the recording.
   */
  readonly tools?: 'recorded' | 'strict' | Readonly<Record<string, Double>>;
  /**
   * A call that the recording cannot answer ends the replay with REPLAY_MISS (`fail`, the default), is answered with an error
   * (`error`), or runs, if its tool only reads (`read-live`).
   */
  readonly onMiss?: 'fail' | 'error' | 'read-live';
  /** The limits of steps and tool errors that the executor of the recorded run had in its `defaults`. */
  readonly defaults?: Partial<Pick<Defaults, 'maxSteps' | 'maxConsecutiveToolErrors' | 'maxSameToolCallRepeats'>>;
  /** Aborted: the replay ends, and rejects with the reason. */
  readonly signal?: AbortSignal;
}

const optionKeys: KnownKeys<ReplayOptions> = {
  agent: true,
  agents: true,
  skills: true,
  model: true,
  tools: true,
  onMiss: true,
  defaults: true,
  signal: true,
};

const of = 'replay';

/**
 * Runs a recorded run again, through the machine of runs, without the world: no store, no person, no critic, and of a tool nothing
 * but the check of its input. Without `model` the recorded answers are given again, and nothing is asked: with the agent of the time
 * that is the recorded run, to the byte. With a `model` it is another run, from the same beginning and with the recorded results.
 * @throws {TypeError} for wrong options, and for what is not a run of `readRun` @throws the reason of `signal`
 * @example
 * const report = await replay(await readRun(executor, 'order-17'), { agent: deskV2 });
 * if (!report.same) console.log(report.difference, report.missed, report.drift);
 */
export async function replay(run: RecordedRun, options: ReplayOptions): Promise<ReplayReport> {
  checkRun(run);
  checkOptions(options);
  const {
    agent,
    agents = [],
    skills = [],
    model,
    tools = 'recorded',
    onMiss = 'fail',
    defaults = {},
    signal,
  } = options;
  signal?.throwIfAborted();
  const doubles = typeof tools === 'string' ? {} : tools;
  const asked = model === undefined ? mute : isModel(model) ? (model as Model) : undefined;
  const standIn = standInFor(agent, {
    ...{ agents, skills, doubles, mayRead: onMiss === 'read-live', isRetried: run.retries !== undefined },
    ...(asked ? { model: asked } : {}),
  });
  const replayed = new ReplayedRun(run, {
    ...{ standIn, doubles, onMiss, isStrict: tools === 'strict', isBaseline: model === undefined },
  });
  const executor = createExecutor({
    ...{ agents: standIn.agents, skills: standIn.skills, middleware: [replayed.middleware] },
    ...(model === undefined || asked ? {} : { models: model as Models }),
    // No answer comes later. A run that was retried needs a record to be retried again, in memory.
    defaults: { ...defaults, modelOutageMs: 0 },
    ...(replayed.isRetried ? { store: memoryStore(), ports: { critic: replayed.critic } } : {}),
    ...(replayed.isCompacted ? { compactor: recordedCompactor(() => replayed.nextCompaction()) } : {}),
    logger: { warn: () => {} },
  });
  const { invocation, resume } = replayed.beginning;
  const how = { ...(resume ? { resume } : {}), ...(signal ? { signal } : {}) };
  let result = await replayed.play(() => executor.start(standIn.agent, invocation, how));
  while (replayed.isToRetry(result)) {
    const { runId } = result;
    result = await replayed.play(() => executor.retry(runId));
  }
  signal?.throwIfAborted();
  return reportOf(replayed, result);
}

function isModel(value: unknown): boolean {
  return isObject(value) && typeof value.doStream === 'function';
}

function checkOptions(given: ReplayOptions): void {
  checkKeys(given, optionKeys, { of });
  const { agent, tools, model, onMiss, agents = [], skills = [] } = given;
  if (!isObject(agent) || typeof agent.id !== 'string')
    throw new TypeError(`${of}: agent must be an agent made with defineAgent`);
  checkWord(`${of}: onMiss`, onMiss, ['fail', 'error', 'read-live']);
  if (typeof tools !== 'object') checkWord(`${of}: tools`, tools, ['recorded', 'strict']);
  else if (!isObject(tools) || !Object.values(tools).every((double) => typeof double === 'function'))
    throw new TypeError(`${of}: tools must be 'recorded', 'strict' or functions by the names of tools`);
  if (model !== undefined && typeof model !== 'function' && !isObject(model))
    throw new TypeError(`${of}: model must be a language model, or models by tier, not ${kindOf(model)}`);
  for (const [name, list] of Object.entries({ agents, skills }))
    if (!Array.isArray(list)) throw new TypeError(`${of}: ${name} must be a list, not ${kindOf(list)}`);
}

function checkRun(run: unknown): void {
  const isRun =
    isObject(run) && typeof run.prompt === 'string' && Array.isArray(run.messages) && Array.isArray(run.steps);
  if (!isRun) throw new TypeError(`${of}: the first argument must be a run as readRun returns it, not ${kindOf(run)}`);
}
