import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { RunResult } from 'pawl';
import type { AppendingStore } from 'pawl/stores/kit';
import type { Job } from './job.ts';
import { note } from './ledger.ts';

/** The store, writing down what it promised: a record that is said to be safe must be there after a kill. */
export function noting(store: AppendingStore, { folder, runId }: Job): AppendingStore {
  const saved = (revision: number) => note(folder, { phase: 'saved', pid: process.pid, runId, revision });
  return {
    ...store,
    save: async (record, options) => {
      await store.save(record, options);
      saved(record.revision);
    },
    append: async (delta, options) => {
      await store.append(delta, options);
      saved(delta.revision);
    },
  };
}

/** Writes down the result of a run: the file is whole, or absent. */
export function finish(folder: string, ended: RunResult): void {
  writeFileSync(join(folder, 'result.tmp'), JSON.stringify(ended));
  renameSync(join(folder, 'result.tmp'), join(folder, 'result.json'));
}
