import type { LanguageModelV4 } from '@ai-sdk/provider';
import { readProperty, toErrorData } from '../run/error-data.ts';
import { ModelError, UnknownTierError } from '../run/errors.ts';

/** A language model: any AI SDK model of specification v4, from whichever provider package. */
export type Model = LanguageModelV4;

/**
 * Which model serves which tier: a record by tier name, or a function (`undefined` = no such tier).
 * @example { fast: anthropic('claude-haiku'), deep: anthropic('claude-opus') }
 */
export type Models = { readonly [tier: string]: Model } | ((tier: string) => Model | undefined);

/**
 * The model that serves a tier.
 * @throws {UnknownTierError} when there is none, or looking it up threw; the message lists the tiers there are
 * @throws {ModelError} when what stands under the tier is not a model of spec v4
 */
export function modelFor(models: Models, tier: string): Model {
  const found = lookUp(models, tier);
  if (found === undefined || found === null)
    throw new UnknownTierError(`no model serves tier "${tier}"; ${known(models)}`);
  if (isModel(found)) return found;
  throw new ModelError(`what serves tier "${tier}" is not a language model of spec v4 but ${describe(found)}`);
}

function lookUp(models: Models, tier: string): unknown {
  try {
    if (typeof models === 'function') return models(tier);
    return Object.hasOwn(models, tier) ? models[tier] : undefined;
  } catch (error) {
    throw new UnknownTierError(`no model serves tier "${tier}": looking it up threw: ${toErrorData(error).message}`, {
      cause: error,
    });
  }
}

function known(models: Models): string {
  if (typeof models === 'function') return 'the models function gave none';
  const tiers = Object.keys(models);
  return tiers.length > 0 ? `known tiers: ${tiers.join(', ')}` : 'there are no tiers';
}

function isModel(value: unknown): value is Model {
  return readProperty(value, 'specificationVersion') === 'v4' && typeof readProperty(value, 'doStream') === 'function';
}

function describe(value: unknown): string {
  const version = readProperty(value, 'specificationVersion');
  const isFunction = typeof readProperty(value, 'doStream') === 'function';
  if (version === 'v4') return 'an object of spec v4 without doStream';
  if (typeof version === 'string') return `a model of spec ${version}; use a provider package of AI SDK 7 or later`;
  if (isFunction) return 'an object with doStream but without specificationVersion';
  if (typeof readProperty(value, 'then') === 'function') return 'a promise; await it before the executor is made';
  return typeof value === 'string'
    ? `the string ${JSON.stringify(value)}; pass the model itself`
    : `a value of type ${typeof value}`;
}
