import type { Prices } from '../budget/prices.ts';
import type { Clock, ErrorData, ExecutorOptions, Models, RunEvent, Tool } from '../index.ts';
import { checkKeys, type KnownKeys } from '../values/known-options.ts';
import type { Judge } from './judge.ts';
import type { JudgeUsage, Ranking } from './ranking.ts';
import type { ModelResponse, ResponseSnapshot } from './snapshot.ts';

export type ModelsById = Extract<Models, { readonly [id: string]: unknown }>;

/** How long a model may take, and the judge, where the call does not say, ms. */
export const DEADLINE_MS = 600_000;

/** A chart with a region for each of very many models takes minutes to build. */
const MAX_MODELS = 100;

export interface FanOutOptions {
  /** What every model is asked. */
  readonly prompt: string;
  /** AI SDK language models by ids of the caller's (spec v4; v3 and v2 are adapted), at most 100: answers come in this order. */
  readonly models: ModelsById;
  /** What all of them may call. A tool whose effect is not `read` is called once for every model. */
  readonly tools?: readonly Tool[];
  /** The checkpoint file, and `<path>.runs` beside it. Absent = nothing is recorded, and nothing survives the process. */
  readonly path?: string;
  /** A folder that the models may look at and propose changes to: each gets `list_files`, `read_file`, `write_file` and `delete_file`. */
  readonly root?: string;
  /** Kept in the checkpoint file, for the caller. */
  readonly verbose?: boolean;
  /** Aborting it makes all models leave off; the same call goes on with them. */
  readonly signal?: AbortSignal;
  /** The system prompt; default: none, or with a `root` what the file tools are for. */
  readonly instructions?: string;
  /** How long each model may take in this process, ms; default 600,000. One that is past it leaves off, and goes on with the next call. */
  readonly deadlineMs?: number;
  /** How many turns each model may take; default: `defaults.maxIterations`, and 20 without. */
  readonly maxIterations?: number;
  /** What models cost, for `costUsd`. */
  readonly prices?: Prices;
  /** Ranks the answers when there are two or more: a model, or a function. */
  readonly judge?: Judge;
  /** Told of every event of every run. What it throws is logged. */
  readonly onEvent?: (modelId: string, event: RunEvent) => unknown;
  /** Told of each finished turn: what there is of the answer by then, and what it has taken. What it throws is logged. */
  readonly onTurn?: (snapshot: ResponseSnapshot) => unknown;
  /** Told of an answer as soon as it is there, also of one from an earlier process. What it throws is logged. */
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
  verbose: true,
  signal: true,
  instructions: true,
  deadlineMs: true,
  maxIterations: true,
  prices: true,
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

export interface FanOutResult {
  /** One for each model, in the order of `models`. */
  readonly responses: readonly ModelResponse[];
  /** Whether some model left off: the checkpoint file is there, and the same call goes on. */
  readonly interrupted: boolean;
  /** What the judge said; absent without one, and where there was nothing to choose from. */
  readonly ranking?: Ranking;
  /** Why the judge gave no ranking. */
  readonly judgeError?: ErrorData;
  /** What a judging model has taken, beside what `responses` count; absent when none was asked, or none has answered. */
  readonly judgeUsage?: JudgeUsage;
  /** Where the answers are now: the checkpoint file, or the file of answers that it became. Absent without a `path`. */
  readonly path?: string;
  /** The answers could not be stored as they are: what stands in the file is older. */
  readonly saveError?: ErrorData;
}

/** @throws {TypeError} for a wrong call */
export function checkOptions(options: FanOutOptions): void {
  checkKeys(options, optionKeys, { of: 'fanOut' });
  const { prompt, models, tools, path, root, signal, deadlineMs, maxIterations, judge } = options;
  if (typeof prompt !== 'string' || prompt.trim() === '')
    throw new TypeError('fanOut needs a prompt: a string that is not empty');
  if (typeof models !== 'object' || models === null || Object.keys(models).length === 0) {
    throw new TypeError('fanOut needs models: { id: model, … } with at least one');
  }
  const count = Object.keys(models).length;
  if (count > MAX_MODELS) {
    throw new TypeError(
      `fanOut asks ${MAX_MODELS} models at most, not ${count}: ask the others in a call of their own`,
    );
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
  for (const [name, value] of Object.entries({ deadlineMs, maxIterations })) {
    if (value !== undefined && !(typeof value === 'number' && value > 0))
      throw new TypeError(`${name} must be a number above 0, not ${String(value)}`);
  }
  if (maxIterations !== undefined && !Number.isInteger(maxIterations)) {
    throw new TypeError(`maxIterations must be a whole number, not ${maxIterations}`);
  }
  if (tools !== undefined && !Array.isArray(tools)) throw new TypeError('tools must be a list of tools');
  if (signal !== undefined && typeof signal?.addEventListener !== 'function') {
    throw new TypeError('signal must be an AbortSignal, as an AbortController has one');
  }
  const isJudge = typeof judge === 'function' || (typeof judge === 'object' && judge !== null);
  if (judge !== undefined && !isJudge) throw new TypeError('judge must be a model, or a function');
}

/** @param tools those of the caller, and those for files @throws {TypeError} when two have one name, or one is no tool */
export function checkTools(tools: readonly Tool[]): void {
  const names = new Set<string>();
  for (const [at, tool] of tools.entries()) {
    if (typeof tool?.name !== 'string' || typeof tool.execute !== 'function') {
      throw new TypeError(`tools[${at}] is no tool: make one with defineTool`);
    }
    if (names.has(tool.name))
      throw new TypeError(`two tools are called ${tool.name}; with a root those for files are there`);
    names.add(tool.name);
  }
}
