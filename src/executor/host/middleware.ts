import type { LanguageModelV4FunctionTool } from '@ai-sdk/provider';
import type { ToolEffect } from '../../run/open-step.ts';
import type { ModelReply } from '../../run/reply.ts';
import { isObject, type JsonValue } from '../../values/json.ts';
import { checkKeys, type KnownKeys, kindOf } from '../../values/known-options.ts';
import type { Message, ToolOutput } from '../../values/message.ts';

/** Facts about each call, for middleware. Frozen; the run never reads it again. */
export interface CallInfo {
  readonly runId: string;
  /** Counts from 1 over the whole life of the run. */
  readonly step: number;
  readonly agentId: string;
  /** The host's name for the class of the loop's model, for example `fast`. */
  /** '' for a model of the agent's own. */
  readonly tier: string;
  /**
   * Names this call, 64 hexadecimal digits. A process that repeats the call after a crash gives it the same key. For a tool
   * call it equals the tool's `idempotencyKey`.
   */
  readonly key: string;
  /** Aborted when the call must end: the run was cancelled, left or is over, or the tool's time is up. */
  readonly signal: AbortSignal;
  /** The labels of the run. */
  readonly labels: Readonly<Record<string, string>>;
}

/** One model call, before it is made. */
export interface ModelCallInfo extends CallInfo {
  readonly provider: string;
  readonly modelId: string;
  /** The messages that the model gets: the transcript, or the compactor's shorter form of it. */
  readonly messages: readonly Message[];
  readonly tools: readonly LanguageModelV4FunctionTool[];
}

/** One tool call, after its input was validated and its intent recorded. */
export interface ToolCallInfo extends CallInfo {
  /** Unique in the run. */
  readonly callId: string;
  readonly name: string;
  /** The arguments as the model gave them. */
  readonly input: JsonValue;
  readonly effect: ToolEffect;
  /** Counts the starts of this call, this one included. */
  readonly attempt: number;
}

/**
 * Functions around the calls of all runs of an executor. `next()` makes the call, at most once. Without `next()` the call is
 * not made, and the return value of the function is the answer. An error that the function throws is a model error, or a tool
 * result `error-text`.
 *
 * `model` runs inside the budget and outside the retries: one `next()` may ask the model several times.
 * `tool` runs inside the time limit of the tool, after the validation of the input. A call that is refused before (an unknown
 * tool, invalid input) does not reach it.
 * @example
 * const timing: Middleware = {
 *   async tool(call, next) {
 *     const from = performance.now();
 *     try {
 *       return await next();
 *     } finally {
 *       console.log(call.name, performance.now() - from);
 *     }
 *   },
 * };
 */
export interface Middleware {
  model?(call: ModelCallInfo, next: () => Promise<ModelReply>): Promise<ModelReply> | ModelReply;
  tool?(call: ToolCallInfo, next: () => Promise<ToolOutput>): Promise<ToolOutput> | ToolOutput;
}

/** One function around a call. */
type Layer<Info, Answer> = (info: Info, next: () => Promise<Answer>) => Promise<Answer> | Answer;

/** The functions of all middleware by the kind of call, outermost first. A kind without functions is absent. */
export interface Layers {
  readonly model?: readonly Layer<ModelCallInfo, ModelReply>[];
  readonly tool?: readonly Layer<ToolCallInfo, ToolOutput>[];
}

/** The labels of a run without labels, as middleware gets them. */
export const noLabels: CallInfo['labels'] = Object.freeze({});

const middlewareKeys: KnownKeys<Middleware> = { model: true, tool: true };

/** Checks the option `middleware`. @throws {TypeError} for a list, an entry or a function of the wrong type */
export function checkMiddleware(given: unknown, of: string): void {
  if (given === undefined) return;
  if (!Array.isArray(given)) throw new TypeError(`${of}: middleware must be a list, not ${kindOf(given)}`);
  for (const [i, each] of given.entries()) {
    const at = `middleware[${i}]`;
    // An instance of a class may have other fields.
    if (!isObject(each) || Object.getPrototypeOf(each) === Object.prototype)
      checkKeys(each, middlewareKeys, { of, at });
    for (const kind of ['model', 'tool'] as const) {
      const layer: unknown = each[kind];
      if (layer !== undefined && typeof layer !== 'function') {
        throw new TypeError(`${of}: ${at}.${kind} must be a function, not ${kindOf(layer)}`);
      }
    }
    if (each.model === undefined && each.tool === undefined) {
      throw new TypeError(`${of}: ${at} has neither a function model nor a function tool`);
    }
  }
}

/**
 * Reads the option `middleware` into layers around model calls and around tool calls. The methods are read once, and keep
 * their object as `this`.
 */
export function layersOf(middleware: readonly Middleware[] = []): Layers {
  const model = middleware.flatMap((each) => (each.model ? [each.model.bind(each)] : []));
  const tool = middleware.flatMap((each) => (each.tool ? [each.tool.bind(each)] : []));
  return { ...(model.length > 0 ? { model } : {}), ...(tool.length > 0 ? { tool } : {}) };
}

/**
 * Makes a model call or tool call through all layers of middleware; the first is the outermost.
 * @throws the error of a layer
 */
export function callThrough<Info, Answer>(
  layers: readonly Layer<Info, Answer>[],
  info: Info,
  call: () => Promise<Answer>,
): Promise<Answer> {
  const from = (index: number): Promise<Answer> => {
    const layer = layers[index];
    return layer ? enter(layer, info, () => from(index + 1)) : call();
  };
  return from(0);
}

/** A layer that has returned has given its answer: a later call of `next` could take effect after a recorded result. */
async function enter<Info, Answer>(
  layer: Layer<Info, Answer>,
  info: Info,
  inner: () => Promise<Answer>,
): Promise<Answer> {
  let refusal: string | undefined;
  const next = async (): Promise<Answer> => {
    if (refusal) throw new TypeError(refusal);
    refusal = 'a middleware called next() twice; a call is made at most once';
    return inner();
  };
  const observe = (): Promise<Answer> => {
    const answer = next();
    // A layer may answer without waiting for the call: a failure of that call must not reach the process.
    answer.catch(() => {});
    return answer;
  };
  try {
    return await layer(info, observe);
  } finally {
    refusal = 'a middleware called next() after it had returned';
  }
}
