import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createExecutor, defineAgent, defineTool, type ExecutorOptions, type JournalEvent, memoryStore } from 'pawl';
import { sqliteStore } from 'pawl/stores/sqlite';
import { callTool, hang, type ScriptedEntry, scriptedModel } from 'pawl/testing';
import { describe, expect, test } from 'vitest';

const stores = {
  memory: () => memoryStore(),
  SQLite: () => sqliteStore({ path: join(mkdtempSync(join(tmpdir(), 'pawl-leaving-')), 'runs.db') }),
};

type Store = ReturnType<(typeof stores)[keyof typeof stores]>;

const look = defineTool({
  ...{ name: 'look', description: 'Looks.', input: { type: 'object' }, effect: 'read' },
  execute: () => 'seen',
});
const desk = defineAgent({ id: 'desk', instructions: 'Work.', tools: [look] });

/** A process. Its journal publishes nothing between two saves. */
const hostOn = (store: Store, script: readonly ScriptedEntry[] = [], more: Partial<ExecutorOptions> = {}) =>
  createExecutor({
    logger: { warn: () => {} },
    models: { fast: scriptedModel(script) },
    agents: [desk],
    store,
    journal: { flushMs: 60_000 },
    ...more,
  });

/** The events up to the one by which a process left for the nth time. */
async function eventsOf(store: Store, times: number): Promise<readonly JournalEvent[]> {
  const read: JournalEvent[] = [];
  await using reader = hostOn(store);
  for await (const event of reader.events('r')) {
    read.push(event);
    if (read.filter(({ type }) => type === 'run.left').length === times) break;
  }
  return read;
}

/** A store that notes the writes of a run, with the types of the events that each of them brings. */
function noting(store: Store) {
  const writes: (readonly [method: string, ...types: string[]])[] = [];
  type Events = { readonly entries: readonly { readonly event: { readonly type: string } }[] } | undefined;
  const note = (method: string, events: Events) =>
    writes.push([method, ...(events?.entries ?? []).map(({ event }) => event.type)]);
  const noted: Store = {
    ...store,
    save: (record, options) => {
      note('save', options?.events);
      return store.save(record, options);
    },
    append: (delta, options) => {
      note('append', options?.events);
      return store.append(delta, options);
    },
    journal: {
      ...store.journal,
      publish: (runId, entries, options) => {
        note('publish', { entries });
        return store.journal.publish(runId, entries, options);
      },
    },
  } as Store;
  return { store: noted, writes };
}

describe.each(Object.keys(stores) as (keyof typeof stores)[])('the journal of a run in %s', (name) => {
  test('says which process left it, in the save that leaves it (studio 4)', async () => {
    const { store, writes } = noting(stores[name]());
    const asked = Promise.withResolvers<void>();
    const host = hostOn(store, [callTool('look'), hang()], { onStep: () => asked.resolve() });
    const run = await host.start(desk, { runId: 'r', prompt: 'Look.' });
    await asked.promise;
    const before = writes.length;
    await host.shutdown();
    expect(await run.result).toMatchObject({ status: 'interrupted' });
    const saves = writes.slice(before).filter(([method]) => method !== 'publish');
    expect(saves.at(-1)?.at(-1)).toBe('run.left');
    expect(writes.filter(([method, ...types]) => method === 'publish' && types.includes('run.left'))).toEqual([]);
    const events = await eventsOf(store, 1);
    expect(writes.at(-1)).toEqual(saves.at(-1));
    const [started, left] = [events.find(({ type }) => type === 'run.started'), events.at(-1)];
    expect(left).toMatchObject({ type: 'run.left', why: 'shutdown', owner: (started as { owner: string }).owner });
  });

  test('does not grow with each slice, and says when a slice was ended early (studio 4)', async () => {
    const store = stores[name]();
    const first = hostOn(store, [hang()]);
    await first.start(desk, { runId: 'r', prompt: 'Look.' });
    await first.shutdown();
    const host = hostOn(store, [callTool('look'), callTool('look'), callTool('look'), hang()]);
    for (let slice = 0; slice < 4; slice++) await host.drive('r', { budgetMs: 0, graceMs: 60_000 });
    const asked = Promise.withResolvers<void>();
    const another = hostOn(store, [
      async () => {
        asked.resolve();
        return hang();
      },
    ]);
    const driving = another.drive('r', { budgetMs: 60_000, graceMs: 60_000 });
    await asked.promise;
    await another.shutdown({ drainMs: 100 });
    await driving;
    const events = await eventsOf(store, 2);
    const ofOwner = events.flatMap((event) => {
      if (event.type === 'run.left') return [`left: ${event.why}`];
      return event.type === 'run.resumed' ? [`resumed${event.isSlice ? ' for a slice' : ''}`] : [];
    });
    expect(ofOwner).toEqual([
      'left: shutdown',
      ...Array.from({ length: 5 }, () => 'resumed for a slice'),
      'left: shutdown',
    ]);
  });
});
