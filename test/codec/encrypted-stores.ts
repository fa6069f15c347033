import { readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Clock, Codec } from 'pawl';
import type { ControlStore, StoreGroups } from 'pawl/stores/kit';
import { sqliteStore } from '../../src/store/sqlite/index.ts';
import { freshPath } from '../store/sqlite/files.ts';

export type DurableStore = ControlStore & Pick<StoreGroups, 'outcomes'> & { close(): Promise<void> };

/** A kind of store that takes a codec. */
export interface Kind {
  readonly name: string;
  fresh(): string;
  /** @param clock by which another one's leases have run out */
  open(path: string, codec?: Codec, clock?: Clock): DurableStore;
}

export const kinds: readonly Kind[] = [
  {
    name: 'SQLite',
    fresh: freshPath,
    open: (path, codec, clock) => sqliteStore({ path, codec, clock, durability: 'process' }),
  },
];

/** All bytes that stand in the files of a store, and around them. A lock may be gone again before it is read. */
export function bytesOf(path: string): string {
  const folder = dirname(path);
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' });
  return names.map((name) => `${name}\n${textOf(join(folder, name))}`).join('\n');
}

function textOf(path: string): string {
  const isFile = statSync(path, { throwIfNoEntry: false })?.isFile() ?? false;
  try {
    return isFile ? readFileSync(path, 'utf8') : '';
  } catch (error) {
    if ((error as { code?: unknown }).code === 'ENOENT') return '';
    throw error;
  }
}
