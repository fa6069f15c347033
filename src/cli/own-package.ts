import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const extension = import.meta.url.endsWith('.ts') ? '.ts' : '.js';
/** The folder of `src`: the root of the repository, or `dist` in the package. */
const codeRoot = new URL('../../', import.meta.url);
/** The folder of this package, as a URL. */
export const packageRoot: URL = extension === '.ts' ? codeRoot : new URL('../', codeRoot);

interface Manifest {
  readonly version: string;
  readonly exports: Readonly<Record<string, string | { readonly default: string }>>;
}

const manifest: Manifest = JSON.parse(readFileSync(new URL('package.json', packageRoot), 'utf8'));

/** The version of this package. */
export const version: string = manifest.version;

/**
 * Returns the URL of a code file of this package, compiled or not, like the caller.
 * @param path without extension, from the root
 */
export function codeFile(path: string): URL {
  return new URL(path + extension, codeRoot);
}

/** Returns the path of a file or folder that this package ships unchanged. */
export function packagePath(path: string): string {
  return fileURLToPath(new URL(path, packageRoot));
}

/** Returns the file of the entry point `pawl` or `pawl/…`, next to the running code; undefined for any other specifier. */
export function ownEntryPoint(specifier: string): string | undefined {
  if (specifier !== 'pawl' && !specifier.startsWith('pawl/')) return undefined;
  const target = manifest.exports[`.${specifier.slice('pawl'.length)}`];
  if (typeof target !== 'object') return undefined;
  return codeFile(target.default.replace(/^\.\/dist\//, '').replace(/\.js$/, '')).href;
}
