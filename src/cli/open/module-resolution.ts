import { registerHooks } from 'node:module';
import { ownEntryPoint, packageRoot } from '../own-package.ts';

/** A package, and the URLs of the files (which need not exist) that it is looked for from, in this order. */
export interface PackageWish {
  readonly specifier: string;
  readonly parents: readonly string[];
}

let lookFrom: readonly string[] = [];

/**
 * Lends agent modules this very package when they import `pawl` and have none installed near them. A module that lies in
 * this package itself gets the code that is running, compiled or not.
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

/** Imports a package as if one of the parents did. @throws with code ERR_MODULE_NOT_FOUND when none of them can see it */
export async function importFrom(wish: PackageWish): Promise<Record<string, unknown>> {
  lookFrom = wish.parents;
  return import(wish.specifier);
}

function firstOf<T>(parents: readonly string[], resolve: (parent: string) => T): T {
  const [first, ...rest] = parents;
  if (first === undefined) throw new TypeError('there is nowhere to look from');
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
