import type { Model, ModelChoice } from '../model/port.ts';
import { checkModelChoice } from '../model/tier.ts';
import { type ModelSettings, settingKeys } from '../run/model-settings.ts';
import type { AiSdkTool, AiSdkToolEntry } from '../tool/ai-sdk.ts';
import type { DataOf } from '../tool/schema.ts';
import { isObject } from '../values/json.ts';
import { checkKeys, type KnownKeys, kindOf } from '../values/known-options.ts';
import { type Agent, type AgentDefinition, defineAgent } from './agent.ts';

/** The settings of `new ToolLoopAgent(settings)` of the AI SDK that an agent of Pawl can honour. One that is undefined is absent. */
export interface AiSdkAgentSettings<Output = unknown>
  extends Omit<{ readonly [Setting in keyof ModelSettings]?: ModelSettings[Setting] | undefined }, 'providerOptions'> {
  /** Records name the agent by it, so it is needed: `fromAiSdk({ id: 'clerk', ...settings })`. */
  readonly id?: string | undefined;
  readonly model: ModelChoice;
  /** A text, or a message with a text. */
  readonly instructions?: unknown;
  /** By name. An entry `{ tool, effect }` says what repeating a call would do; without it a call is made once. */
  readonly tools?: { readonly [name: string]: AiSdkTool | AiSdkToolEntry } | undefined;
  readonly activeTools?: readonly PropertyKey[] | undefined;
  /** `isStepCount(n)` or `stepCountIs(n)`, or a list of them: the least is `maxSteps`. */
  readonly stopWhen?: unknown;
  readonly toolCallConcurrency?: number | undefined;
  readonly output?: Output | undefined;
  readonly providerOptions?: unknown;
  /** Sent with each request to the model. No record has them. */
  readonly headers?: { readonly [name: string]: string | undefined } | undefined;
}

const ownKeys: KnownKeys<Omit<AiSdkAgentSettings, keyof ModelSettings>> = {
  id: true,
  model: true,
  instructions: true,
  tools: true,
  activeTools: true,
  stopWhen: true,
  toolCallConcurrency: true,
  output: true,
  headers: true,
};

const callbacks = 'an executor has onStep and observers, and each run has its events';
const ownContext = 'a run has inputs, which its tools get as context.invocation.inputs';

/** What Pawl has in place of a setting that it cannot honour. */
const otherWords: Readonly<Record<string, string>> = {
  prepareStep: 'phases and middleware of an executor change what a model call gets',
  prepareCall: ownContext,
  callOptionsSchema: ownContext,
  runtimeContext: ownContext,
  toolsContext: ownContext,
  toolApproval: 'a tool has needsApproval, and an executor has approvals',
  maxRetries: 'an executor has defaults: { modelAttempts }',
  timeout: 'an agent has maxRuntimeMs, and a tool timeoutMs',
  telemetry: 'an executor has observers',
  experimental_telemetry: 'an executor has observers',
  repairToolCall: 'the model reads what was wrong with its call, and makes it again',
  experimental_repairToolCall: 'the model reads what was wrong with its call, and makes it again',
};

/**
 * Returns an agent that is made of the settings of an agent of the AI SDK, as `new ToolLoopAgent(settings)` takes them.
 * @throws {TypeError} for a setting that it cannot honour (callbacks, `prepareStep`, other stop conditions): none is dropped
 * @throws as `defineAgent`
 * @example
 * const clerk = fromAiSdk({ id: 'clerk', model: openai('gpt-5'), instructions: 'Answer.', tools: { weather }, stopWhen: isStepCount(8) })
 */
export function fromAiSdk<Output = undefined>(settings: AiSdkAgentSettings<Output>): Agent<DataOf<Output>> {
  const given = known(settings);
  const { id, model, tools, activeTools, toolCallConcurrency, output, headers, stopWhen } = given;
  const of = nameOf(given);
  const own = Object.entries(given).filter(([key]) => Object.hasOwn(settingKeys, key));
  const definition = {
    id,
    model: headers === undefined ? model : withHeaders(of, model, headers),
    instructions: textOf(of, given.instructions),
    ...(tools && { tools: activeTools ? active(tools, activeTools) : tools }),
    ...(stopWhen === undefined ? {} : { maxSteps: stepsOf(of, stopWhen) }),
    ...(toolCallConcurrency === undefined ? {} : { toolConcurrency: toolCallConcurrency }),
    ...(output === undefined ? {} : { output }),
    ...(own.length > 0 ? { settings: Object.fromEntries(own) } : {}),
  };
  return defineAgent(definition as AgentDefinition<Output>);
}

/** The AI SDK takes an undefined setting for an absent one. */
function known<Output>(settings: AiSdkAgentSettings<Output>): AiSdkAgentSettings<Output> {
  if (!isObject(settings)) throw new TypeError(`fromAiSdk takes the settings of an agent, not ${kindOf(settings)}`);
  const entries = Object.entries(settings).filter(([, value]) => value !== undefined);
  const given = Object.fromEntries(entries) as unknown as AiSdkAgentSettings<Output>;
  const of = nameOf(given);
  for (const [key] of entries) {
    const word = /^(experimental_)?on[A-Z]/.test(key) ? callbacks : Object.hasOwn(otherWords, key) && otherWords[key];
    if (word) throw new TypeError(`${of}: Pawl cannot honour ${key}; ${word}`);
  }
  checkKeys(given, { ...ownKeys, ...settingKeys }, { of });
  if (typeof given.id !== 'string' || given.id === '')
    throw new TypeError(
      `fromAiSdk needs an id, by which records name the agent: fromAiSdk({ id: 'clerk', ...settings })`,
    );
  return given;
}

function nameOf({ id }: { readonly id?: unknown }): string {
  return typeof id === 'string' ? `fromAiSdk: agent ${id}` : 'fromAiSdk';
}

function textOf(of: string, instructions: unknown = ''): string {
  if (typeof instructions === 'string') return instructions;
  const { role, content, ...rest } = isObject(instructions) ? instructions : {};
  if (role === 'system' && typeof content === 'string' && Object.values(rest).every((value) => value === undefined))
    return content;
  throw new TypeError(`${of}: instructions must be one text; Pawl sends no system messages with options of their own`);
}

function active<Tool>(tools: { readonly [name: string]: Tool }, names: readonly PropertyKey[]) {
  return Object.fromEntries(Object.entries(tools).filter(([name]) => names.includes(name)));
}

/** Conditions are functions: a count of steps is found by asking it about longer and longer lists. */
const MOST_STEPS = 1_000;

function stepsOf(of: string, stopWhen: unknown): number {
  const conditions = Array.isArray(stopWhen) ? stopWhen : [stopWhen];
  const counts = conditions.map(countOf);
  if (counts.length > 0 && !counts.includes(undefined)) return Math.min(...(counts as number[]));
  throw new TypeError(
    `${of}: stopWhen must be isStepCount(n), with n from 1 to ${MOST_STEPS}, or a list of them; Pawl ends a loop by its steps alone`,
  );
}

/** Returns the count of a condition that looks at nothing but the number of steps; undefined for any other. */
function countOf(condition: unknown): number | undefined {
  if (typeof condition !== 'function') return undefined;
  let hasLooked = false;
  let hasCounted = false;
  const looks = (length: number) => ({
    get: (_: object, key: PropertyKey) => {
      if (key === 'length') {
        hasCounted = true;
        return length;
      }
      hasLooked = true;
      return undefined;
    },
  });
  for (let length = 1; length <= MOST_STEPS; length++) {
    const steps = new Proxy([], looks(length));
    const answer = answerOf(condition as (asked: object) => unknown, { steps });
    if (hasLooked || !hasCounted || typeof answer !== 'boolean') return undefined;
    if (answer) return length;
  }
  return undefined;
}

function answerOf(condition: (asked: object) => unknown, asked: object): unknown {
  try {
    return condition(asked);
  } catch {
    return undefined;
  }
}

/** Headers may hold keys: they belong to the model, which no record has. */
function withHeaders(of: string, model: ModelChoice, headers: object): ModelChoice {
  checkModelChoice(`${of}: model`, model);
  if (typeof model === 'string') throw new TypeError(`${of}: headers need a language model, not the name of a tier`);
  const more = Object.entries(headers).filter(([, value]) => value !== undefined);
  const { doGenerate, doStream } = model as Model;
  const asking = <Options extends { readonly headers?: object }>(options: Options): Options => ({
    ...options,
    headers: { ...Object.fromEntries(more), ...options.headers },
  });
  return {
    specificationVersion: model.specificationVersion,
    get provider() {
      return model.provider;
    },
    get modelId() {
      return model.modelId;
    },
    get supportedUrls() {
      return model.supportedUrls;
    },
    doGenerate: (options: Parameters<Model['doGenerate']>[0]) => doGenerate.call(model, asking(options)),
    doStream: (options: Parameters<Model['doStream']>[0]) => doStream.call(model, asking(options)),
  } as ModelChoice;
}
