import type { LanguageModelV4CallOptions } from '@ai-sdk/provider';
import { frozenJson, isObject, type JsonObject } from '../values/json.ts';
import { checkWord, type KnownKeys, kindOf, type OptionsPlace, readOptions } from '../values/known-options.ts';

/**
 * The settings of model calls: the call settings of the AI SDK. A model ignores a setting that it does not know, or reports
 * it.
 */
export interface ModelSettings {
  /**
   * How random the answer is, from 0; most providers accept up to 1 or 2.
   * @default of the provider
   * @example temperature: 0
   */
  readonly temperature?: number;
  /**
   * The most likely tokens up to this share are drawn from, 0 to 1. Set this or `temperature`, not both.
   * @default of the provider
   * @example topP: 0.9
   */
  readonly topP?: number;
  /**
   * Each token is drawn from this many.
   * @default of the provider
   * @example topK: 40
   */
  readonly topK?: number;
  /**
   * Makes what was said once less likely.
   * @default of the provider
   * @example presencePenalty: 0.5
   */
  readonly presencePenalty?: number;
  /**
   * Makes what was said often less likely.
   * @default of the provider
   * @example frequencyPenalty: 0.5
   */
  readonly frequencyPenalty?: number;
  /**
   * Most tokens of one reply.
   * @default of the provider
   * @example maxOutputTokens: 2_000
   */
  readonly maxOutputTokens?: number;
  /**
   * The model ends its text before one of these.
   * @default none
   * @example stopSequences: ['END']
   */
  readonly stopSequences?: readonly string[];
  /**
   * A whole number; models that accept one answer the same request alike.
   * @default none
   * @example seed: 7
   */
  readonly seed?: number;
  /**
   * How much the model thinks before it answers. Models of spec v3 and v2 do not accept it: see their `providerOptions`.
   * @default of the provider
   * @example reasoning: 'low'
   */
  readonly reasoning?: NonNullable<LanguageModelV4CallOptions['reasoning']>;
  /**
   * Whether the model may call tools (`auto`), must not (`none`), must call one (`required`), or must call this
   * one. The last two apply to the first turn of a loop only: a model that must call a tool in each turn never answers.
   * Without tools the choice is not sent.
   * @default 'auto'
   * @example toolChoice: 'required'
   */
  readonly toolChoice?: 'auto' | 'none' | 'required' | { readonly type: 'tool'; readonly toolName: string };
  /**
   * Options for one provider, by its name. Plain JSON.
   * @default none
   * @example providerOptions: { openai: { store: false } }
   */
  readonly providerOptions?: { readonly [provider: string]: JsonObject };
}

/** Returns the full names of all settings, for errors about a setting in a wrong place. @param at default: `settings` */
export function settingNames(at = 'settings'): readonly string[] {
  return Object.keys(settingKeys).map((key) => `${at}.${key}`);
}

/** The names of all settings. */
export const settingKeys: KnownKeys<ModelSettings> = {
  temperature: true,
  topP: true,
  topK: true,
  presencePenalty: true,
  frequencyPenalty: true,
  maxOutputTokens: true,
  stopSequences: true,
  seed: true,
  reasoning: true,
  toolChoice: true,
  providerOptions: true,
};

const efforts: readonly string[] = ['provider-default', 'none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'];

/** The valid range of each number. */
const numbers: readonly [keyof ModelSettings, string, (value: number) => boolean][] = [
  ['temperature', 'a number of 0 or more', (value) => value >= 0],
  ['topP', 'a number from 0 to 1', (value) => value >= 0 && value <= 1],
  ['topK', 'a whole number above 0', (value) => Number.isInteger(value) && value > 0],
  ['presencePenalty', 'a finite number', () => true],
  ['frequencyPenalty', 'a finite number', () => true],
  ['maxOutputTokens', 'a whole number above 0', (value) => Number.isInteger(value) && value > 0],
  ['seed', 'a whole number', Number.isInteger],
];

/**
 * Checks and copies settings. Headers are not a setting: they hold keys, and belong to the model that the host makes.
 * @throws {TypeError} that names the setting; {NOT_JSON} for provider options that are not JSON
 */
export function checkSettings(settings: ModelSettings, place: OptionsPlace): ModelSettings {
  const given = readOptions(settings, settingKeys, place);
  const name = (key: string) => `${place.of}: ${place.at}.${key}`;
  for (const [key, what, isRight] of numbers) {
    const value: unknown = given[key];
    if (value === undefined || (typeof value === 'number' && Number.isFinite(value) && isRight(value))) continue;
    throw new TypeError(`${name(key)} must be ${what}, not ${kindOf(value)}`);
  }
  checkWord(name('reasoning'), given.reasoning, efforts);
  const { stopSequences, toolChoice, providerOptions } = given;
  return Object.freeze({
    ...given,
    ...(stopSequences && { stopSequences: texts(name('stopSequences'), stopSequences) }),
    ...(toolChoice && { toolChoice: choiceOf(name('toolChoice'), toolChoice) }),
    ...(providerOptions && { providerOptions: optionsOf(name('providerOptions'), providerOptions) }),
  });
}

function texts(name: string, given: readonly string[]): readonly string[] {
  if (!Array.isArray(given) || given.some((text) => typeof text !== 'string' || text === ''))
    throw new TypeError(`${name} must be a list of texts`);
  return Object.freeze([...given]);
}

function choiceOf(name: string, given: NonNullable<ModelSettings['toolChoice']>): ModelSettings['toolChoice'] & {} {
  if (!isObject(given)) {
    checkWord(name, given, ['auto', 'none', 'required']);
    return given;
  }
  const { type, toolName } = readOptions(given, { type: true, toolName: true }, { of: name });
  if (type !== 'tool' || typeof toolName !== 'string')
    throw new TypeError(`${name} must be 'auto', 'none', 'required' or { type: 'tool', toolName: string }`);
  return Object.freeze({ type, toolName });
}

function optionsOf(name: string, given: unknown): NonNullable<ModelSettings['providerOptions']> {
  if (!isObject(given) || !Object.values(given).every(isObject))
    throw new TypeError(`${name} must be an object of objects, by the names of providers`);
  return frozenJson(given, name) as { readonly [provider: string]: JsonObject };
}

const noSettings: ModelSettings = Object.freeze({});

/** Merges a phase's settings over its agent's, key by key; provider options key by key within each provider. */
export function mergeSettings(agent: ModelSettings = noSettings, phase?: ModelSettings): ModelSettings {
  if (phase === undefined) return agent;
  const providers = [agent.providerOptions ?? {}, phase.providerOptions ?? {}] as const;
  const names = new Set(providers.flatMap(Object.keys));
  if (names.size === 0) return { ...agent, ...phase };
  const merged = Array.from(names, (name) => [name, { ...providers[0][name], ...providers[1][name] }] as const);
  return { ...agent, ...phase, providerOptions: Object.fromEntries(merged) };
}
