import { readProperty, toErrorData } from '../values/error-data.ts';
import { UnknownTierError, UnsupportedError } from '../values/errors.ts';
import { letGo } from '../values/thenable.ts';
import { adapted, type OlderModel } from './adapt-model.ts';
import type { Model, Models } from './port.ts';

/**
 * Returns the model that serves a tier; one of spec v3 or v2 is adapted.
 * @throws {UnknownTierError} if there is none, or the lookup threw; the message lists the known tiers
 * @throws {UnsupportedError} if the tier's entry is not a model, or has another specification
 */
export function modelFor(models: Models, tier: string): Model {
  const found = lookUp(models, tier);
  if (found === undefined || found === null)
    throw new UnknownTierError(`no model serves tier "${tier}"${whyNone(models, tier, String(found))}`);
  letGo(found);
  if (isOf(['v4'], found)) return found as Model;
  if (isOf(['v3', 'v2'], found)) return adapted(found as OlderModel);
  throw new UnsupportedError(
    `what serves tier "${tier}" is not a language model of spec v4, v3 or v2 but ${describe(found)}`,
  );
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
  return tiers.length > 0 ? `; known tiers: ${tiers.join(', ')}` : '; there are no tiers';
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
  return typeof value === 'string'
    ? `the string ${JSON.stringify(value)}; pass the model itself`
    : `a value of type ${typeof value}`;
}
