import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { memoryStore } from 'pawl';
import { sqliteStore } from 'pawl/stores/sqlite';
import { describe } from 'vitest';
import { anySlicing } from './any-slicing.ts';

describe('any slicing of a run in memory:', () => {
  anySlicing((clock) => memoryStore({ clock }), [0, 20, 30]);
});

describe('any slicing of a run in SQLite:', () => {
  anySlicing(
    (clock) => sqliteStore({ clock, path: join(mkdtempSync(join(tmpdir(), 'pawl-slices-')), 'runs.db') }),
    [30],
  );
});
