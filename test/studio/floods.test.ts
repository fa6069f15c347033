import { type MemoryStore, memoryStore } from 'pawl';
import { callTool } from 'pawl/testing';
import { afterEach, expect, test } from 'vitest';
import { hostOf, settle, toolOf, until } from '../fixtures/host.ts';
import { leftBehind } from '../fixtures/left-runs.ts';
import { loopTurns } from '../fixtures/loop-turns.ts';
import { plainStore } from '../fixtures/watched-store.ts';
import { askTool } from '../http/web-host.ts';
import { studioHost } from './studio-host.ts';

const leaving: (() => void)[] = [];
afterEach(() => {
  for (const leave of leaving.splice(0)) leave();
});

/** A Studio on a store with the run `r`, and the turn of the event loop of each read of its journal. */
async function counted() {
  const store = memoryStore();
  const worker = hostOf({
    store,
    journal: { flushMs: 1 },
    script: [...Array.from({ length: 20 }, () => callTool('look', {})), callTool('ask', {})],
    tools: [toolOf('look'), askTool],
    defaults: { waitLingerMs: 1 },
  });
  await (await worker.start({ runId: 'r' })).result;
  await until(() => worker.executor.runs.get().length === 0);
  const now = loopTurns();
  const turns: number[] = [];
  const read: MemoryStore['journal']['read'] = (runId, options) => {
    turns.push(now());
    // As if each event were as long as a page.
    return store.journal.read(runId, { ...options, limit: 1 });
  };
  const checkpoints: MemoryStore = { ...store, journal: { ...store.journal, read } };
  return { turns, host: studioHost({ store: checkpoints, studio: { maxStreams: 1_000 } }) };
}

const READERS = 60;

/** The most reads in one turn. */
const mostOf = (turns: readonly number[]) =>
  Math.max(0, ...[...Map.groupBy(turns, (turn) => turn).values()].map(({ length }) => length));

for (const path of ['/watch?run=r', '/runs/r/events'])
  test(`readers of ${path} who come at once hold up no turn with the reads of all, and nothing is read for those who have left (studio 19, 33)`, async () => {
    const { host, turns } = await counted();
    const left = new AbortController();
    const answers = Array.from({ length: READERS }, () => host.open(path, { signal: left.signal }));
    for (const { body } of await Promise.all(answers)) void body?.cancel();
    left.abort();
    for (let wait = 0; wait < 3; wait++) await settle();
    const before = turns.length;
    for (let wait = 0; wait < 3; wait++) await settle();
    expect([turns.length - before, mostOf(turns) < READERS / 10]).toEqual([0, true]);
    turns.length = 0;
    const stay = new AbortController();
    leaving.push(() => stay.abort());
    const others = await Promise.all(Array.from({ length: READERS }, () => host.open(path, { signal: stay.signal })));
    const firsts = others.map(async ({ body }) => {
      const reader = body?.getReader();
      for (let text = ''; !text.includes('run.started'); )
        text += new TextDecoder().decode((await reader?.read())?.value);
    });
    await Promise.all(firsts);
    expect(mostOf(turns)).toBeLessThan(READERS / 10);
  });

test('searches that come at once read one list in a turn after their first ones (studio 33)', async () => {
  const store = await leftBehind(350);
  const now = loopTurns();
  const turns: number[] = [];
  const listInterrupted: MemoryStore['listInterrupted'] = (...args) => {
    turns.push(now());
    return store.listInterrupted(...args);
  };
  const { ask } = studioHost({ store: { ...plainStore(store), listInterrupted } });
  const found = await Promise.all(Array.from({ length: READERS }, () => ask('/runs?q=nothing')));
  expect(found.every(({ status, body }) => status === 200 && body.items.length === 0)).toBe(true);
  expect(turns.length).toBeGreaterThan(3 * READERS);
  expect(mostOf(turns.filter((turn) => turn !== turns[0]))).toBeLessThan(READERS / 10);
});
