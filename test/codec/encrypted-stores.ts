import { readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Clock, Codec, OutcomeStore, OwningStore } from 'pawl';
import { fileStore } from '../../src/store/file.ts';
import { sqliteStore } from '../../src/store/sqlite.ts';
import { freshDir } from '../store/file-folder.ts';
import { freshPath } from '../store/sqlite-files.ts';

export type DurableStore = OwningStore & OutcomeStore & { close(): Promise<void> };

/** A kind of store that takes a codec. */
export interface Kind {
  readonly name: string;
  fresh(): string;
  /** @param clock by which another one's leases have run out */
  open(path: string, codec?: Codec, clock?: Clock): DurableStore;
}

export const kinds: readonly Kind[] = [
  { name: 'SQLite', fresh: freshPath, open: (path, codec, clock) => sqliteStore({ path, codec, clock }) },
  { name: 'file', fresh: freshDir, open: (dir, codec, clock) => fileStore({ dir, codec, clock }) },
];

/** All bytes that stand in the files of a store, and around them. */
export function bytesOf(path: string): string {
  const folder = dirname(path);
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => statSync(join(folder, name)).isFile())
    .map((name) => `${name}\n${readFileSync(join(folder, name), 'utf8')}`)
    .join('\n');
}
