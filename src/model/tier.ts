import { checkSettings } from '../run/model-settings.ts';
import { readProperty, toErrorData } from '../values/error-data.ts';
import { UnknownTierError, UnsupportedError } from '../values/errors.ts';
import { type KnownKeys, kindOf, readOptions } from '../values/known-options.ts';
import { letGo } from '../values/thenable.ts';
import { adapted, type OlderModel } from './adapt-model.ts';
import type { Model, ModelChoice, ModelEntry, Models } from './port.ts';

/** A model of a tier, ready to be asked. */
export interface ServedModel extends Omit<ModelEntry, 'model'> {
  readonly model: Model;
}

/** Most models of one tier. */
const MAX_LISTED_MODELS = 8;
const MAX_KEY_CHARS = 40;

/**
 * Returns the models that serve a tier, in their order: one, or those of its list. Models of spec v3 or v2 are adapted.
 * @throws {UNKNOWN_TIER} if there is none, or the lookup threw; the message lists the known tiers
 * @throws {UNSUPPORTED} if the tier's entry is not a model, or has another specification
 * @throws {TypeError} for a list that is empty or too long, or has a wrong entry
 */
export function modelsFor(models: Models, tier: string): readonly ServedModel[] {
  const found = lookUp(models, tier);
  if (found === undefined || found === null)
    throw new UnknownTierError(`no model serves tier "${tier}"${whyNone(models, tier, String(found))}`);
  letGo(found);
  if (Array.isArray(found)) return listed(found, `models.${tier}`);
  return [{ model: modelOf(found, `what serves tier "${tier}"`) }];
}

/**
 * Returns the models of a list, checked. @param name names the list in errors
 * @throws {TypeError} for a list that is empty or too long, or has a wrong entry @throws {UNSUPPORTED} for an entry whose model is none
 */
export function listed(list: readonly unknown[], name: string): readonly ServedModel[] {
  if (list.length === 0) throw new TypeError(`${name} is an empty list; name at least one model`);
  if (list.length > MAX_LISTED_MODELS)
    throw new TypeError(`${name} has ${list.length} models; a list has at most ${MAX_LISTED_MODELS}`);
  const served = Array.from(list, (entry: unknown, i) => entryOf(entry, `${name}[${i}]`));
  const twice = served.findIndex(({ model }, i) => served.findIndex((other) => other.model === model) < i);
  if (twice >= 0) throw new TypeError(`${name}[${twice}] is the same model as one before it`);
  return served;
}

const entryKeys: KnownKeys<ModelEntry> = { model: true, when: true, key: true, maxAttempts: true, settings: true };

function entryOf(entry: unknown, name: string): ServedModel {
  const isModel = typeof readProperty(entry, 'specificationVersion') === 'string';
  if (isModel || readProperty(entry, 'model') === undefined) return { model: modelOf(entry, name) };
  const place = { of: 'createExecutor', at: name };
  const { model, when, key, maxAttempts, settings } = readOptions(entry as ModelEntry, entryKeys, place);
  const { of } = place;
  if (when !== undefined && typeof when !== 'function')
    throw new TypeError(`${of}: ${name}.when must be a function, not ${kindOf(when)}`);
  if (key !== undefined && !(typeof key === 'string' && key.length > 0 && key.length <= MAX_KEY_CHARS))
    throw new TypeError(`${of}: ${name}.key must be a text of 1 to ${MAX_KEY_CHARS} characters`);
  if (maxAttempts !== undefined && !(Number.isSafeInteger(maxAttempts) && maxAttempts > 0))
    throw new TypeError(`${of}: ${name}.maxAttempts must be a whole number above 0, not ${kindOf(maxAttempts)}`);
  return Object.freeze({
    model: modelOf(model, `${name}.model`),
    ...(when === undefined ? {} : { when }),
    ...(key === undefined ? {} : { key: key.toWellFormed() }),
    ...(maxAttempts === undefined ? {} : { maxAttempts }),
    ...(settings === undefined ? {} : { settings: checkSettings(settings, { of, at: `${name}.settings` }) }),
  });
}

/** Returns the tier that a choice names; '' for a language model. */
export function tierOf(choice: ModelChoice): string {
  return typeof choice === 'string' ? choice : '';
}

/**
 * Returns a value as a language model; one of spec v3 or v2 is adapted.
 * @throws {UNSUPPORTED} if it is no model, or has another specification @param what names the value in the error
 */
export function modelOf(value: unknown, what: string): Model {
  if (isOf(['v4'], value)) return value as Model;
  if (isOf(['v3', 'v2'], value)) return adapted(value as OlderModel);
  throw new UnsupportedError(`${what} is not a language model of spec v4, v3 or v2 but ${describe(value)}`);
}

/**
 * Checks that an option is a language model, or the name of a tier; an absent one is fine.
 * @param name names the option in errors @throws {TypeError}
 */
export function checkModelChoice(name: string, value: unknown): void {
  const isTier = typeof value === 'string' && !value.includes('/');
  if (value === undefined || isTier || isOf(['v4', 'v3', 'v2'], value)) return;
  throw new TypeError(`${name} must be a language model of the AI SDK, or the name of a tier, not ${describe(value)}`);
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

function whyNone(models: Models, tier: string, found: string): string {
  if (typeof models === 'function') return '; the models function returned none';
  if (Object.hasOwn(models, tier)) return `: its entry in models is ${found}`;
  const tiers = Object.keys(models);
  if (tiers.length > 0) return `; known tiers: ${tiers.join(', ')}`;
  return '; the executor has no models: give the agent one, defineAgent({ model })';
}

function isOf(versions: readonly unknown[], value: unknown): boolean {
  const version = readProperty(value, 'specificationVersion');
  return versions.includes(version) && typeof readProperty(value, 'doStream') === 'function';
}

function describe(value: unknown): string {
  const version = readProperty(value, 'specificationVersion');
  const isFunction = typeof readProperty(value, 'doStream') === 'function';
  if (typeof version === 'string' && !isFunction) return `an object of spec ${version} without doStream`;
  if (typeof version === 'string') return `a model of spec ${version}; use a provider package of AI SDK 5, 6 or 7`;
  if (isFunction) return 'an object with doStream but without specificationVersion';
  if (typeof readProperty(value, 'then') === 'function') return 'a promise; await it before the executor is made';
  if (Array.isArray(value)) return 'a list; give it a tier, createExecutor({ models: { fast: [ … ] } }), and name that';
  if (typeof value !== 'string') return `a value of type ${typeof value}`;
  const text = JSON.stringify(value.slice(0, 100));
  if (!value.includes('/')) return `the string ${text}; pass the model itself`;
  return `the string ${text}, a name for the AI SDK's gateway; pass the model itself: gateway(${text}) of the package ai`;
}
