import type { LanguageModelV4 } from '@ai-sdk/provider';
import type { OlderModel } from './adapt-model.ts';

/** A language model: any AI SDK model of specification v4, from any provider package. */
export type Model = LanguageModelV4;

/**
 * Which model serves which tier: a record by tier name, or a function (`undefined` = no such tier). Models of the
 * specifications v3 and v2 are adapted.
 * @example { fast: anthropic('claude-haiku'), deep: anthropic('claude-opus') }
 */
export type Models =
  | { readonly [tier: string]: Model | OlderModel }
  | ((tier: string) => Model | OlderModel | undefined);

/** What an agent, a phase or a skill asks: a language model, or the name of one of the executor's tiers. */
export type ModelChoice = Model | OlderModel | string;
