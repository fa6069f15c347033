import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { createExecutor, defineAgent, type JournalEvent, type Model } from 'pawl';
import { sqliteStore } from 'pawl/stores/sqlite';
import { type Cost, inFolder, measured, median, perStep, usedHeap } from './measure.ts';
import { type Kind, onPostgres } from './other-stores.ts';
import { largeEventRows, manyKeysRow } from './readers.ts';
import { amount, type Part, type Row } from './report.ts';
import { askingModel, type BenchStore, bench, checkEnded, payloadOf } from './workload.ts';

const STEPS = 300;
const READERS = 1_000;

/** What it costs that other processes can read the events of a run, and how soon they have a text. */
export async function webRows(isQuick: boolean): Promise<Part> {
  const own = await journalRows(sqlite, isQuick);
  const onServer = (await onPostgres((kind) => journalRows(kind, isQuick))) ?? [];
  const rows = [...own, ...onServer, await latencyRow(isQuick ? 20 : 60), ...(await readersRows())];
  rows.push(...(await largeEventRows(isQuick)), await manyKeysRow());
  return { rows, broken: [] };
}

type JournalKind = Pick<Kind, 'name' | 'store'>;

const sqlite: JournalKind = {
  name: 'SQLite',
  store: (folder) => {
    const store = sqliteStore({ path: join(folder, 'pawl.db') });
    return { store: store as BenchStore, close: () => store.close() };
  },
};

/** The same run with and without a journal, by turns. */
async function journalRows(kind: JournalKind, isQuick: boolean): Promise<Row[]> {
  const pairs: { readonly off: Cost; readonly on: Cost }[] = [];
  for (let i = 0; i <= (isQuick ? 4 : 10); i++) {
    const [off, on] =
      i % 2 === 0
        ? [await stepCost(kind, false), await stepCost(kind, true)]
        : swapped(await stepCost(kind, true), await stepCost(kind, false));
    // The first turn warms up.
    if (i > 0) pairs.push({ off, on });
  }
  const row = (what: string, { key, budget }: { readonly key: 'cpuMs' | 'bytes'; readonly budget: number }): Row => {
    const [off, on] = [median(pairs.map((each) => each.off[key])), median(pairs.map((each) => each.on[key]))];
    const who = kind === sqlite ? '' : ', without the server';
    const note =
      key === 'cpuMs'
        ? `${on.toFixed(3)} ms, without ${off.toFixed(3)} ms${who}`
        : `${amount(on / 1_000, 'KB')}, without ${amount(off / 1_000, 'KB')}, payload ${amount(payloadOf(STEPS) / STEPS / 1_000, 'KB')}`;
    return { what, value: median(pairs.map(({ on, off }) => on[key] / off[key])), unit: 'x', budget, note };
  };
  const to = kind === sqlite ? 'bytes to disk' : 'bytes of its log';
  return [
    row(`CPU a step with a journal to without, ${kind.name}, N=${STEPS}`, { key: 'cpuMs', budget: 1.15 }),
    row(`${to} a step with a journal to without, ${kind.name}, N=${STEPS}`, { key: 'bytes', budget: 1.1 }),
  ];
}

const swapped = <T>(a: T, b: T): readonly [T, T] => [b, a];

function stepCost(kind: JournalKind, hasJournal: boolean): Promise<Cost> {
  return inFolder(async (folder) => {
    const { store, close, bytes } = kind.store(folder);
    const { run } = bench({ store, steps: STEPS, hasJournal });
    // The first use makes folders and tables, which is no cost of a step.
    await store.listInterrupted();
    const before = await bytes?.();
    let after: number | undefined;
    const cost = await measured(async () => {
      for (let i = 0; i < 5; i++) checkEnded(await run(), STEPS);
      after = await bytes?.();
      await close();
    });
    const written = before === undefined || after === undefined ? {} : { bytes: after - before };
    return perStep({ ...cost, ...written }, 5 * STEPS);
  });
}

/** A model that says one word a moment, and notes when. */
function talkingModel(words: number, saidAt: number[]): Model {
  async function* parts() {
    yield { type: 'text-start', id: 't' } as const;
    for (let i = 0; i < words; i++) {
      await sleep(37);
      saidAt.push(performance.now());
      yield { type: 'text-delta', id: 't', delta: `${i} ` } as const;
    }
    yield { type: 'text-end', id: 't' } as const;
    yield {
      type: 'finish',
      finishReason: { unified: 'stop', raw: 'stop' },
      usage: {
        inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
        outputTokens: { total: 1, text: 1, reasoning: 0 },
      },
    } as const;
  }
  return { ...askingModel(0), doStream: async () => ({ stream: ReadableStream.from(parts()) }) };
}

/** From the model's word to a reader on another store of the same file, as another process has it. */
function latencyRow(words: number): Promise<Row> {
  return inFolder(async (folder) => {
    const path = join(folder, 'pawl.db');
    const [store, otherStore] = [sqliteStore({ path }), sqliteStore({ path })];
    const saidAt: number[] = [];
    const agent = defineAgent({ id: 'talker', instructions: 'Talk.' });
    const executor = createExecutor({
      models: { fast: talkingModel(words, saidAt) },
      store,
      journal: true,
    });
    const other = createExecutor({ models: { fast: askingModel(0) }, store: otherStore, journal: true });
    const run = await executor.start(agent, { runId: 'talk', prompt: 'Talk.' });
    const late: number[] = [];
    const show = (event: JournalEvent) => {
      if (event.type !== 'model.delta') return;
      for (const word of event.text.trim().split(' ')) late.push(performance.now() - (saidAt[Number(word)] ?? 0));
    };
    for await (const event of other.events('talk')) show(event);
    await run.result;
    await Promise.all([executor.shutdown(), other.shutdown()]);
    await Promise.all([store.close(), otherStore.close()]);
    const [first = Number.NaN] = late.sort((a, b) => a - b);
    const most = late[Math.floor(late.length * 0.95)] ?? Number.NaN;
    const note = `of ${late.length} words: first ${first.toFixed(0)} ms, median ${median(late).toFixed(0)} ms, the slowest 5 % above`;
    return { what: 'text on another host', value: most, unit: 'ms', budget: 300, note };
  });
}

/** Readers of one run on another host: 1,000 that read, then 1,000 that do not. */
function readersRows(): Promise<Row[]> {
  return inFolder(async (folder) => {
    const path = join(folder, 'pawl.db');
    const { executor, agent, store, close } = bench({ path, steps: 100, hasJournal: true });
    const run = await executor.start(agent, { runId: 'read', prompt: 'Collect the pieces.' });
    await run.result;
    const otherStore = sqliteStore({ path });
    const other = createExecutor({ models: { fast: askingModel(0) }, store: otherStore, journal: true });
    const cost = await measured(() =>
      Promise.all(
        Array.from({ length: READERS }, async () => {
          for await (const _ of other.events('read'));
        }),
      ),
    );
    const before = await usedHeap();
    const unread = Array.from({ length: READERS }, () => other.events('read'));
    await Promise.all(unread.map((events) => events.next()));
    const heap = ((await usedHeap()) - before) / READERS / 1_000;
    await Promise.all(unread.map((events) => events.return?.()));
    await Promise.all([executor.shutdown(), other.shutdown(), otherStore.close(), store && close()]);
    return [
      {
        what: `CPU of one of ${READERS} readers of a run of 100 steps`,
        value: cost.cpuMs / READERS,
        unit: 'ms',
        budget: 10,
        note: `${cost.wallMs.toFixed(0)} ms for all`,
      },
      {
        what: `heap of one of ${READERS} streams that nothing reads`,
        value: heap,
        unit: 'KB',
        budget: 10,
        note: 'each has read one event',
      },
    ];
  });
}
