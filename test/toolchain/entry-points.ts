import { readFileSync } from 'node:fs';
import { posix } from 'node:path';

/** A module of the package that users import. */
export interface EntryPoint {
  /** For example `pawl/stores/sqlite`. */
  readonly name: string;
  /** Its source, from the root: `src/store/sqlite/index.ts`. */
  readonly source: string;
  /** It runs in browsers, and on any Node that has what it uses. */
  readonly inBrowsers: boolean;
}

interface Manifest {
  readonly name: string;
  readonly exports: Readonly<Record<string, string | { readonly 'pawl-source': string }>>;
}

const manifest: Manifest = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));

const browserFolders: ReadonlySet<string> = new Set(['src/client', 'src/react']);

/** The entry points that package.json exports, in its order. */
export const entryPoints: readonly EntryPoint[] = Object.entries(manifest.exports).flatMap(([subpath, target]) => {
  if (typeof target === 'string') return [];
  const source = target['pawl-source'].replace('./', '');
  return [{ name: manifest.name + subpath.slice(1), source, inBrowsers: browserFolders.has(posix.dirname(source)) }];
});
