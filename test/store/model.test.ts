import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { RunCheckpoint } from '../../src/record/checkpoint.ts';
import type { KeepingStore } from '../../src/store/history-port.ts';
import { memoryStore } from '../../src/store/memory/memory-store.ts';
import type { AppendingStore } from '../../src/store/port.ts';
import { sqliteStore } from '../../src/store/sqlite/index.ts';
import { nextStep, sampleOutcome, sampleRecord } from '../../src/testing/store-contract/records.ts';
import { freshPath } from './sqlite/files.ts';

interface Opened {
  readonly store: AppendingStore & KeepingStore;
  /** The storage opened anew, as after a shutdown. */
  reopen(): Promise<Opened>;
}

const inMemory = (store = memoryStore()): Opened => ({ store, reopen: async () => inMemory(store) });
const inFile = (path = freshPath()): Opened => {
  const store = sqliteStore({ path, durability: 'process' });
  return { store, reopen: () => store.close().then(() => inFile(path)) };
};

type Event = {
  readonly event: 'begin' | 'step' | 'complete' | 'end' | 'erase' | 'fail' | 'shutdown';
  readonly run: number;
};

const events = fc.array(
  fc.record<Event>({
    event: fc.constantFrom('begin', 'step', 'step', 'complete', 'end', 'erase', 'fail', 'shutdown'),
    run: fc.nat(4),
  }),
  { maxLength: 40 },
);

/** At once, the last two are one write: the record that it removes has replaced the kept one. */
const endedAndBegunAgain = (['begin', 'end', 'begin', 'fail'] as const).map((event) => ({ event, run: 0 }));

/** The runs that have not ended, and those that have and are kept. */
interface Models {
  readonly model: Map<string, RunCheckpoint>;
  readonly kept: Map<string, RunCheckpoint>;
}

/** What happens to a run, and what is left of it. A step of a run that is over, or never began, is not made. */
async function play({ store }: Opened, { event, run }: Event, { model, kept }: Models): Promise<void> {
  const runId = `run-${run}`;
  const record = model.get(runId);
  if (event === 'begin' && !record) {
    model.set(runId, sampleRecord(runId));
    kept.delete(runId);
    await store.save(sampleRecord(runId));
  } else if (event === 'step' && record) {
    const step = nextStep(record);
    model.set(runId, step.record);
    await store.append(step.delta);
  } else if (event === 'end' && record) {
    model.delete(runId);
    kept.set(runId, record);
    const claim = await store.claim(runId, 'me', 60_000);
    if (claim) await store.history.end(claim, { outcome: sampleOutcome(runId), keepUntil: 4e12 });
  } else if (event === 'erase' && !record) {
    kept.delete(runId);
    await store.history.erase(runId);
  } else if (event === 'complete' || event === 'fail') {
    model.delete(runId);
    const keeping = event === 'complete' ? store.outcomes.keep(runId, sampleOutcome(runId), 4e12) : undefined;
    await Promise.all([keeping, store.delete(runId)]);
  }
}

describe.for([
  ['memory', inMemory],
  ['SQLite', inFile],
] as const)('the %s store', ([, open]) => {
  test('lists a run as interrupted iff it began and did not end, and keeps it iff it ended so (checkpoint 8, web 16)', async () => {
    await fc.assert(
      fc.asyncProperty(events, fc.boolean(), async (all, atOnce) => {
        let opened = open();
        const models = { model: new Map<string, RunCheckpoint>(), kept: new Map<string, RunCheckpoint>() };
        const { model, kept } = models;
        const asked: Promise<void>[] = [];
        for (const each of all) {
          if (each.event === 'shutdown') opened = await opened.reopen();
          else asked.push(play(opened, each, models));
          // A claim is read before the end: the next write waits for it.
          if (!atOnce || each.event === 'end') await asked.at(-1);
        }
        const { store } = await opened.reopen();
        const listed = await store.listInterrupted();
        expect(listed.map((run) => run.runId).sort()).toEqual([...model.keys()].sort());
        for (const [runId, record] of model) expect(await store.load(runId)).toEqual(record);
        const ended = await store.history.list({ limit: 100 });
        expect(ended.map((run) => run.runId).sort()).toEqual([...kept.keys()].sort());
        for (const [runId, record] of kept) {
          expect(await store.load(runId)).toBeNull();
          expect(await store.load(runId, { ended: true })).toEqual(record);
        }
        await Promise.all(asked);
      }),
      { numRuns: 40, examples: [[endedAndBegunAgain, true]] },
    );
  });
});
