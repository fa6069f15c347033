import type { Clock, ErrorData, ExecutorOptions, Models, Ports, Prices, RunEvent, Tool } from '../index.ts';
import { durationMs } from '../values/clock.ts';
import { checkFlag, checkKeys, checkMethods, earlierNames, type KnownKeys, kindOf } from '../values/known-options.ts';
import type { Judge } from './judge.ts';
import type { JudgeUsage, Ranking } from './ranking.ts';
import type { ModelResponse, ResponseSnapshot } from './snapshot.ts';

export type ModelsById = Extract<Models, { readonly [id: string]: unknown }>;

/** The default time limit of each model and of the judge, ms. */
export const DEADLINE_MS = 600_000;

/** How long the end of a fan-out is returned again. */
const RETENTION_MS = 7 * 86_400_000;

/** XState needs minutes to build a chart with very many models. */
const MAX_MODELS = 100;

/** How long a fan-out that ended is kept. */
export interface FanOutRetention {
  /** The same call returns its answers for so long: ms, or a text such as `'7d'`; default 7 days. 0 = each call asks. */
  readonly outcomes?: number | string;
}

export interface FanOutOptions {
  /** The prompt for every model. */
  readonly prompt: string;
  /** AI SDK language models (spec v4; v3 and v2 are adapted) by ids of the caller, at most 100. Answers have this order. */
  readonly models: ModelsById;
  /** The tools of all models. A tool whose effect is not `read` is called once for every model. */
  readonly tools?: readonly Tool[];
  /** The checkpoint file; `<path>.runs` is beside it. Absent = nothing is recorded, and nothing survives the process. */
  readonly path?: string;
  /** A folder that models may read and propose changes to: each gets `list_files`, `read_file`, `write_file` and `delete_file`. */
  readonly root?: string;
  /** `true`: all models are asked, also if the same call has ended and is kept. An unfinished fan-out continues all the same. */
  readonly fresh?: boolean;
  /** How long the same call returns the answers of a fan-out that ended. */
  readonly retention?: FanOutRetention;
  /** Stored in the checkpoint file, for the caller. */
  readonly verbose?: boolean;
  /** Aborting it interrupts all models; the same call continues them. */
  readonly signal?: AbortSignal;
  /** The system prompt; default: none, or with a `root` an explanation of the file tools. */
  readonly instructions?: string;
  /** The time limit of each model in this process, ms; default 600,000. A model that exceeds it is interrupted; the next call continues it. */
  readonly deadlineMs?: number;
  /** The most turns of each model; default: `defaults.maxSteps`, else 20. */
  readonly maxSteps?: number;
  /** The prices of models, for `costUsd`; default: what `ports.budget` counts, else 0. */
  readonly prices?: Prices;
  /** The budget is asked about each call of a model and of a judging model. One that it refuses is interrupted; the next call continues it. */
  readonly ports?: Pick<Ports, 'budget'>;
  /** Whose budget it is; default ''. */
  readonly callerId?: string;
  /** Ranks the answers if there are two or more: a model, or a function. */
  readonly judge?: Judge;
  /** Called with every event of every run. Its errors are logged. */
  readonly onEvent?: (modelId: string, event: RunEvent) => unknown;
  /** Called after each completed turn, with the answer and usage so far. Its errors are logged. */
  readonly onTurn?: (snapshot: ResponseSnapshot) => unknown;
  /** Called with each answer as soon as it is complete, also with answers of an earlier process. Its errors are logged. */
  readonly onResponse?: (response: ModelResponse) => unknown;
  readonly inspect?: ExecutorOptions['inspect'];
  readonly logger?: ExecutorOptions['logger'];
  readonly defaults?: ExecutorOptions['defaults'];
  readonly clock?: Clock;
  readonly ids?: () => string;
  readonly random?: () => number;
}

const optionKeys: KnownKeys<FanOutOptions> = {
  prompt: true,
  models: true,
  tools: true,
  path: true,
  root: true,
  fresh: true,
  retention: true,
  verbose: true,
  signal: true,
  instructions: true,
  deadlineMs: true,
  maxSteps: true,
  prices: true,
  ports: true,
  callerId: true,
  judge: true,
  onEvent: true,
  onTurn: true,
  onResponse: true,
  inspect: true,
  logger: true,
  defaults: true,
  clock: true,
  ids: true,
  random: true,
};

const retentionKeys: KnownKeys<FanOutRetention> = { outcomes: true };
const portKeys: KnownKeys<Pick<Ports, 'budget'>> = { budget: true };

export interface FanOutResult {
  /** One response for each model, in the order of `models`. */
  readonly responses: readonly ModelResponse[];
  /** Whether a model was interrupted: the checkpoint file exists, and the same call continues. */
  readonly interrupted: boolean;
  /** The judge's ranking; absent without a judge, or with fewer than two answers. */
  readonly ranking?: Ranking;
  /** Why there is no ranking. */
  readonly judgeError?: ErrorData;
  /** The usage of a judging model, which `responses` do not include; absent if no model was asked, or none has answered. */
  readonly judgeUsage?: JudgeUsage;
  /** The file of the answers: the checkpoint file, or the file of answers that replaced it. Absent without a `path`. */
  readonly path?: string;
  /** The answers could not be stored: the file has older ones. */
  readonly saveError?: ErrorData;
  /** An earlier call of the same request ended with these answers: no model and no judge was asked. */
  readonly kept?: true;
  /** Of kept answers: when the fan-out ended, wall clock of its process, ms. */
  readonly endedAt?: number;
}

/** Checks the options of fanOut. @throws {TypeError} if an option is invalid */
export function checkFanOut(options: FanOutOptions): void {
  checkKeys(options, optionKeys, { of: 'fanOut', foreign: earlierNames });
  const { prompt, models, tools, path, root, signal, deadlineMs, maxSteps, judge } = options;
  if (typeof prompt !== 'string' || prompt.trim() === '')
    throw new TypeError('fanOut needs a prompt: a string that is not empty');
  if (typeof models !== 'object' || models === null || Object.keys(models).length === 0) {
    throw new TypeError('fanOut needs models: { id: model, … } with at least one');
  }
  const count = Object.keys(models).length;
  if (count > MAX_MODELS) {
    throw new TypeError(`fanOut asks at most ${MAX_MODELS} models, not ${count}; ask the others in another call`);
  }
  for (const [id, model] of Object.entries(models)) {
    if (id === '') throw new TypeError('a model of fanOut has an empty id');
    if (typeof model !== 'object' || model === null) {
      throw new TypeError(`models.${id} is ${String(model)}; it must be a model of the AI SDK`);
    }
  }
  for (const [name, value] of Object.entries({ path, root })) {
    if (value !== undefined && (typeof value !== 'string' || value === '')) {
      throw new TypeError(`${name} must be a path that is not empty`);
    }
  }
  for (const [name, value] of Object.entries({ deadlineMs, maxSteps })) {
    if (value !== undefined && !(typeof value === 'number' && value > 0))
      throw new TypeError(`${name} must be a number above 0, not ${String(value)}`);
  }
  if (maxSteps !== undefined && !Number.isInteger(maxSteps)) {
    throw new TypeError(`maxSteps must be a whole number, not ${maxSteps}`);
  }
  if (tools !== undefined && !Array.isArray(tools)) throw new TypeError('tools must be a list of tools');
  if (signal !== undefined && typeof signal?.addEventListener !== 'function') {
    throw new TypeError('signal must be an AbortSignal');
  }
  checkKept(options);
  const isJudge = typeof judge === 'function' || (typeof judge === 'object' && judge !== null);
  if (judge !== undefined && !isJudge) throw new TypeError('judge must be a model, or a function');
}

function checkKept(options: FanOutOptions): void {
  const { fresh, retention, ports, callerId } = options;
  checkFlag('fanOut: fresh', fresh);
  if (retention !== undefined) checkKeys(retention, retentionKeys, { of: 'fanOut', at: 'retention' });
  const { outcomes } = retention ?? {};
  if (!(keptMs(options) >= 0)) {
    const got = typeof outcomes === 'string' ? JSON.stringify(outcomes.slice(0, 40)) : kindOf(outcomes);
    throw new TypeError(`fanOut: retention.outcomes must be ms of 0 or more, or a text such as '7d', not ${got}`);
  }
  if (ports !== undefined) checkKeys(ports, portKeys, { of: 'fanOut', at: 'ports' });
  checkMethods('fanOut: ports.budget', ports?.budget, { methods: ['check', 'reserve', 'commit', 'refund'] });
  if (callerId !== undefined && typeof callerId !== 'string')
    throw new TypeError(`fanOut: callerId must be a string, not ${kindOf(callerId)}`);
}

/** Returns how long the end of a fan-out is returned again, ms; NaN if the option is no time. */
export function keptMs({ retention }: Pick<FanOutOptions, 'retention'>): number {
  const { outcomes = RETENTION_MS } = retention ?? {};
  if (typeof outcomes === 'string') return durationMs(outcomes) ?? Number.NaN;
  return typeof outcomes === 'number' ? outcomes : Number.NaN;
}

/**
 * Checks that the tools of fanOut are tools, and have different names.
 * @param tools those of the caller, and those for files
 * @throws {TypeError} for two tools of one name, a tool that needs an approval, or an invalid tool
 */
export function checkTools(tools: readonly Tool[]): void {
  const names = new Set<string>();
  for (const [at, tool] of tools.entries()) {
    if (typeof tool?.name !== 'string' || typeof tool.execute !== 'function') {
      throw new TypeError(`tools[${at}] is not a tool; use defineTool`);
    }
    if ((tool.needsApproval ?? false) !== false)
      throw new TypeError(`tools[${at}]: ${tool.name} needs an approval, and the runs of a fan-out wait for no person`);
    if (names.has(tool.name))
      throw new TypeError(`two tools have the name ${tool.name}; a root adds the tools for files`);
    names.add(tool.name);
  }
}
