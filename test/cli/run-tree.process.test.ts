import { type InterruptedRun, memoryStore } from 'pawl';
import { describe, expect, test } from 'vitest';
import { RunTree } from '../../src/cli/commands/run-tree.ts';
import { StoreUnavailableError } from '../../src/values/errors.ts';
import { interruptedRun } from './stored-runs.ts';

/** The list of a store of runs, each with the run that it says began it. */
async function listOf(...runs: readonly (readonly [runId: string, parentRunId: string])[]) {
  const store = memoryStore();
  const { meta } = interruptedRun();
  for (const [runId, parentRunId] of runs) await store.save(interruptedRun({ meta: { ...meta, runId, parentRunId } }));
  return { store, entries: await store.listInterrupted() };
}

const named = (entries: readonly InterruptedRun[], id: string) =>
  entries.find(({ runId }) => runId === id) as InterruptedRun;

describe('the place of a run in its tree', () => {
  test('is its own when a host only gave it a parent: an id that a call gave begins with the parent’s', async () => {
    const { store, entries } = await listOf(['r', 'gone'], ['gone~', '']);
    const tree = new RunTree(store, entries);
    for (const entry of entries) expect(await tree.placeOf(entry)).toEqual({ kind: 'own' });
  });

  test('is below the run at the top also where that one came too late for the list', async () => {
    const { store, entries } = await listOf(['t', ''], ['t~a', 't'], ['t~a~b', 't~a']);
    const tree = new RunTree(
      store,
      entries.filter(({ runId }) => runId !== 't'),
    );
    expect(await tree.placeOf(named(entries, 't~a~b'))).toEqual({ kind: 'child', root: 't' });
  });

  test('is below the run at the top also where nobody can say whether that one is there', async () => {
    const { entries } = await listOf(['t~a', 't']);
    const load = () => Promise.reject(new StoreUnavailableError('the disk does not answer'));
    expect(await new RunTree({ load }, entries).placeOf(named(entries, 't~a'))).toEqual({ kind: 'child', root: 't' });
  });

  test('is that of an orphan when damaged records name each other as parents: nobody is at the top', async () => {
    const { store, entries } = await listOf(['~a', '~b'], ['~b', '~a']);
    const tree = new RunTree(store, entries);
    for (const entry of entries) expect(await tree.placeOf(entry)).toEqual({ kind: 'orphan' });
  });
});
