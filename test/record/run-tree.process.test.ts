import { type CheckpointStore, type InterruptedRun, memoryStore } from 'pawl';
import { describe, expect, test } from 'vitest';
import { RunTree } from '../../src/record/run-tree.ts';
import { StoreUnavailableError } from '../../src/values/errors.ts';
import { interruptedRun } from '../cli/stored-runs.ts';

/** The list of a store of runs, each with the run that it says began it. */
async function listOf(...runs: readonly (readonly [runId: string, parentRunId: string])[]) {
  const store = memoryStore();
  const { meta } = interruptedRun();
  for (const [runId, parentRunId] of runs) await store.save(interruptedRun({ meta: { ...meta, runId, parentRunId } }));
  return { store, entries: await store.listInterrupted() };
}

function treeOf(load: CheckpointStore['load'], entries: readonly InterruptedRun[]) {
  const tree = new RunTree({ load });
  for (const entry of entries) tree.add(entry);
  return tree;
}

const named = (entries: readonly InterruptedRun[], id: string) =>
  entries.find(({ runId }) => runId === id) as InterruptedRun;

describe('the place of a run in its tree', () => {
  test('is its own when a host only gave it a parent: an id that a call gave begins with the parent’s', async () => {
    const { store, entries } = await listOf(['r', 'gone'], ['gone~', '']);
    const tree = treeOf(store.load, entries);
    for (const entry of entries) expect(await tree.placeOf(entry)).toEqual({ kind: 'own' });
  });

  test('is below the run at the top also where that one came too late for the list', async () => {
    const { store, entries } = await listOf(['t', ''], ['t~a', 't'], ['t~a~b', 't~a']);
    const tree = treeOf(
      store.load,
      entries.filter(({ runId }) => runId !== 't'),
    );
    expect(await tree.placeOf(named(entries, 't~a~b'))).toEqual({ kind: 'child', parent: 't~a', root: 't', depth: 2 });
  });

  test('is below the run at the top also where the store cannot say whether that one exists', async () => {
    const { entries } = await listOf(['t~a', 't']);
    const load = () => Promise.reject(new StoreUnavailableError('the disk does not answer'));
    expect(await treeOf(load, entries).placeOf(named(entries, 't~a'))).toMatchObject({
      kind: 'child',
      root: 't',
      trouble: { code: 'STORE_UNAVAILABLE' },
    });
  });

  test('is that of an orphan when damaged records name each other as parents: no run is at the top', async () => {
    const { store, entries } = await listOf(['~a', '~b'], ['~b', '~a']);
    const tree = treeOf(store.load, entries);
    for (const entry of entries) expect(await tree.placeOf(entry)).toEqual({ kind: 'orphan' });
  });

  test('is that of an orphan below a run that was not listed, and which is an orphan itself', async () => {
    const { store, entries } = await listOf(['gone~a', 'gone'], ['gone~a~b', 'gone~a']);
    const listed = entries.filter(({ runId }) => runId !== 'gone~a');
    expect(await treeOf(store.load, listed).placeOf(named(entries, 'gone~a~b'))).toEqual({ kind: 'orphan' });
  });

  test('is read from the record where the list of a host names no parent', async () => {
    const { store, entries } = await listOf(['t', ''], ['~a', 't']);
    const bare = entries.map((entry) => {
      if (!('meta' in entry)) return entry;
      const { parent: _, ...rest } = entry;
      return rest;
    });
    const place = { kind: 'child', parent: 't', root: 't', depth: 1 };
    expect(await treeOf(store.load, bare).placeOf(named(bare, '~a'))).toEqual(place);
  });

  test('is below a run that was not listed and is live in this process, for any answer of the store', async () => {
    const { store, entries } = await listOf(['t~a', 't']);
    const tree = new RunTree({ load: store.load, live: (runId) => (runId === 't' ? {} : undefined) });
    expect(await tree.placeOf(named(entries, 't~a'))).toEqual({ kind: 'child', parent: 't', root: 't', depth: 1 });
  });

  test('is found with one read of each run that was not listed, and none of a listed one', async () => {
    const { store, entries } = await listOf(['t', ''], ['t~a', 't'], ['t~b', 't'], ['t~a~c', 't~a']);
    const reads: string[] = [];
    const load: CheckpointStore['load'] = (runId) => {
      reads.push(runId);
      return store.load(runId);
    };
    const tree = treeOf(
      load,
      entries.filter(({ runId }) => runId !== 't'),
    );
    for (const entry of entries) await tree.placeOf(entry);
    expect(reads).toEqual(['t']);
  });
});
