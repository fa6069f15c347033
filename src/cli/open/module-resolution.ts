import { registerHooks } from 'node:module';
import { ownEntryPoint, packageRoot } from '../own-package.ts';

/** A package, and the URLs of the files (which need not exist) from which it is resolved, in this order. */
interface PackageWish {
  readonly specifier: string;
  readonly parents: readonly string[];
}

let lookFrom: readonly string[] = [];

/**
 * Makes `import 'pawl'` in agent modules resolve to this package if none is installed near them. A module inside this
 * package gets the running code, compiled or not.
 */
export function lendOwnPackage(): void {
  registerHooks({
    resolve(specifier, context, next) {
      const resolveFrom = (parentURL: string | undefined) => next(specifier, { ...context, parentURL });
      if (context.parentURL === import.meta.url && !isUrlOrPath(specifier)) return firstOf(lookFrom, resolveFrom);
      const own = ownEntryPoint(specifier);
      if (own === undefined) return next(specifier, context);
      const lent = { url: own, shortCircuit: true };
      if (context.parentURL?.startsWith(packageRoot.href) && !isInstalled(context.parentURL)) return lent;
      return attempt(() => resolveFrom(context.parentURL)) ?? lent;
    },
  });
}

/**
 * Imports an optional package as if one of the parent files did, for example from the user's folder.
 * @throws with code ERR_MODULE_NOT_FOUND if none of them can resolve it
 */
export async function importFrom(wish: PackageWish): Promise<Record<string, unknown>> {
  lookFrom = wish.parents;
  return import(wish.specifier);
}

function firstOf<T>(parents: readonly string[], resolve: (parent: string) => T): T {
  const [first, ...rest] = parents;
  if (first === undefined) throw new TypeError('there is no file to resolve from');
  return rest.length === 0 ? resolve(first) : (attempt(() => resolve(first)) ?? firstOf(rest, resolve));
}

function attempt<T>(work: () => T): T | undefined {
  try {
    return work();
  } catch {
    return undefined;
  }
}

function isInstalled(url: string): boolean {
  return url.slice(packageRoot.href.length).includes('node_modules/');
}

function isUrlOrPath(specifier: string): boolean {
  return /^(?:[a-z]+:|[./])/.test(specifier);
}
