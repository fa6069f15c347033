import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import type { RunCheckpoint } from '../../../src/record/checkpoint.ts';
import { type FileStore, fileStore } from '../../../src/store/file/index.ts';
import { nextStep, userMessage } from '../../../src/testing/store-contract/records.ts';
import { freshDir, journalOf } from './folder.ts';

export const owner = 'somebody';

/** A run of a whole record and two steps, held by somebody: its records, and its journal after each. */
export interface History {
  readonly records: readonly RunCheckpoint[];
  readonly journals: readonly Buffer[];
  readonly last: ReturnType<typeof nextStep>;
}

export async function history(first: RunCheckpoint): Promise<History> {
  const dir = freshDir();
  await using store = fileStore({ dir, durability: 'process' });
  const claim = (await store.claim('run', owner, 600_000)) ?? undefined;
  const steps = [nextStep(first), nextStep(nextStep(first).record, [userMessage('ä\n😀')])] as const;
  const journals: Buffer[] = [];
  const look = () => journals.push(readFileSync(journalOf(dir, 'run')));
  await store.save(first, { claim });
  look();
  for (const { delta } of steps) await store.append(delta, { claim }).then(look);
  return { records: [first, ...steps.map((step) => step.record)], journals, last: steps[1] };
}

/** A store in which this is the journal of the run. */
export function storeWith(journal: Uint8Array, runId = 'run'): { store: FileStore; dir: string } {
  const dir = freshDir();
  mkdirSync(dirname(journalOf(dir, runId)), { recursive: true });
  writeFileSync(journalOf(dir, runId), journal);
  return { dir, store: fileStore({ dir, durability: 'process' }) };
}

/** The record, or the code of the refusal. */
export const found = (store: FileStore, runId = 'run'): Promise<unknown> =>
  store.load(runId).catch((error: { code?: unknown }) => error.code);

/** What a list shows: id and status. */
export async function listed(store: FileStore): Promise<string[]> {
  return (await store.listInterrupted()).map((run) => `${run.runId} ${run.status}`);
}
