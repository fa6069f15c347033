import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { RunCheckpoint } from '../../src/record/checkpoint.ts';
import { fileStore } from '../../src/store/file/index.ts';
import { memoryStore } from '../../src/store/memory/memory-store.ts';
import type { AppendingStore, OutcomeStore } from '../../src/store/port.ts';
import { sqliteStore } from '../../src/store/sqlite/index.ts';
import { nextStep, sampleOutcome, sampleRecord } from '../../src/testing/store-contract/records.ts';
import { freshDir } from './file/folder.ts';
import { freshPath } from './sqlite/files.ts';

interface Opened {
  readonly store: AppendingStore & OutcomeStore;
  /** The storage opened anew, as after a shutdown. */
  reopen(): Promise<Opened>;
}

const inMemory = (store = memoryStore()): Opened => ({ store, reopen: async () => inMemory(store) });
const inFolder = (dir = freshDir()): Opened => {
  const store = fileStore({ dir, durability: 'process' });
  return { store, reopen: () => store.close().then(() => inFolder(dir)) };
};
const inFile = (path = freshPath()): Opened => {
  const store = sqliteStore({ path, durability: 'process' });
  return { store, reopen: () => store.close().then(() => inFile(path)) };
};

type Event = { readonly event: 'begin' | 'step' | 'complete' | 'fail' | 'shutdown'; readonly run: number };

const events = fc.array(
  fc.record<Event>({ event: fc.constantFrom('begin', 'step', 'step', 'complete', 'fail', 'shutdown'), run: fc.nat(4) }),
  { maxLength: 40 },
);

/** What happens to a run, and what is left of it. A step of a run that is over, or never began, is not made. */
async function play({ store }: Opened, { event, run }: Event, model: Map<string, RunCheckpoint>): Promise<void> {
  const runId = `run-${run}`;
  const record = model.get(runId);
  if (event === 'begin' && !record) {
    model.set(runId, sampleRecord(runId));
    await store.save(sampleRecord(runId));
  } else if (event === 'step' && record) {
    const step = nextStep(record);
    model.set(runId, step.record);
    await store.append(step.delta);
  } else if (event === 'complete' || event === 'fail') {
    model.delete(runId);
    const keeping = event === 'complete' ? store.keepOutcome(runId, sampleOutcome(runId), 4e12) : undefined;
    await Promise.all([keeping, store.delete(runId)]);
  }
}

describe.for([
  ['memory', inMemory],
  ['file', inFolder],
  ['SQLite', inFile],
] as const)('the %s store', ([, open]) => {
  test('lists a run as interrupted iff it began and did not end (checkpoint 8)', async () => {
    await fc.assert(
      fc.asyncProperty(events, fc.boolean(), async (all, atOnce) => {
        let opened = open();
        const model = new Map<string, RunCheckpoint>();
        const asked: Promise<void>[] = [];
        for (const each of all) {
          if (each.event === 'shutdown') opened = await opened.reopen();
          else asked.push(play(opened, each, model));
          if (!atOnce) await asked.at(-1);
        }
        const { store } = await opened.reopen();
        const listed = await store.listInterrupted();
        expect(listed.map((run) => run.runId).sort()).toEqual([...model.keys()].sort());
        for (const [runId, record] of model) expect(await store.load(runId)).toEqual(record);
        await Promise.all(asked);
      }),
      { numRuns: 40 },
    );
  });
});
