import type { LanguageModelV4 } from '@ai-sdk/provider';
import type { ModelSettings } from '../run/model-settings.ts';
import type { OlderModel } from './adapt-model.ts';

/** A language model: any AI SDK model of specification v4, from any provider package. */
export type Model = LanguageModelV4;

/** How a model failed, for the model that may be asked in its place. */
export interface FallbackFailure {
  /** `passing`: it may pass. `blocked`: the account or the model is refused. `final`: this request is refused. */
  readonly kind: 'passing' | 'blocked' | 'final';
  /** The HTTP status, if there was one. */
  readonly status?: number;
  /** Pawl's code of the error, such as `MODEL`, `MODEL_STALLED`, `CONTEXT_TOO_LONG`. */
  readonly code: string;
  /** How long the provider asks to wait, ms. */
  readonly retryAfterMs?: number;
  /** The model that failed: `provider/modelId`. */
  readonly from: string;
}

/** A model in a list, and how it is asked. */
export interface ModelEntry {
  readonly model: Model | OlderModel;
  /**
   * Whether this model is asked after that failure of the one before; a pure function. Default: after what may pass and what is blocked,
   * and after a final failure of any model but the one that was asked first.
   */
  readonly when?: (failure: FallbackFailure) => boolean;
  /** Names the account, where two entries have the same provider: thoughts of one account are not sent to the other. 1 to 40 characters. */
  readonly key?: string;
  /** The most requests of one step to this model for failures that may pass; default 2. */
  readonly maxAttempts?: number;
  /** Over those of the agent. */
  readonly settings?: ModelSettings;
}

/** What serves a tier: a model, or a list of up to 8, the preferred one first: the next one is asked when one fails. */
export type TierModels = Model | OlderModel | readonly (Model | OlderModel | ModelEntry)[];

/**
 * Which models serve which tier: a record by tier name, or a function (`undefined` = no such tier). A function returns the same model
 * objects each time. Models of the specifications v3 and v2 are adapted.
 * @example { fast: anthropic('claude-haiku'), deep: [anthropic('claude-opus'), openai('gpt-5')] }
 */
export type Models = { readonly [tier: string]: TierModels } | ((tier: string) => TierModels | undefined);

/** What an agent, a phase or a skill asks: a language model, or the name of one of the executor's tiers. */
export type ModelChoice = Model | OlderModel | string;
