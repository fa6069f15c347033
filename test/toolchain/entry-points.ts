import { readFileSync } from 'node:fs';

/** A module of the package that users import. */
export interface EntryPoint {
  /** For example `pawl/stores/file`. */
  readonly name: string;
  /** Its source, from the root: `src/store/file/index.ts`. */
  readonly source: string;
}

interface Manifest {
  readonly name: string;
  readonly exports: Readonly<Record<string, string | { readonly 'pawl-source': string }>>;
}

const manifest: Manifest = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));

/** The entry points that package.json exports, in its order. */
export const entryPoints: readonly EntryPoint[] = Object.entries(manifest.exports).flatMap(([subpath, target]) =>
  typeof target === 'string'
    ? []
    : [{ name: manifest.name + subpath.slice(1), source: target['pawl-source'].replace('./', '') }],
);
