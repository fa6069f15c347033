import { type CheckpointStore, memoryStore } from 'pawl';
import { callTool, hang, reply, testClock } from 'pawl/testing';
import { afterEach, describe, expect, test } from 'vitest';
import type { WatchFrame } from '../../src/studio/wire.ts';
import { StoreUnavailableError } from '../../src/values/errors.ts';
import { gate, hostOf, settle, toolOf, until } from '../fixtures/host.ts';
import { leftBehind } from '../fixtures/left-runs.ts';
import { plainStore, watchedStore } from '../fixtures/watched-store.ts';
import { mailTool } from '../http/web-host.ts';
import { root, type StudioHostOptions, studioHost } from './studio-host.ts';

const closing: (() => void)[] = [];
afterEach(() => {
  for (const close of closing.splice(0)) close();
});

type Host = ReturnType<typeof studioHost>;

/** A tab that watches: the frames that it got so far. */
async function tabOn(host: Host, query = 'runs=1', as = root) {
  const leaving = new AbortController();
  closing.push(() => leaving.abort());
  const response = await host.open(`/watch?${query}`, { as, signal: leaving.signal });
  const frames: (WatchFrame & { readonly id?: string | undefined })[] = [];
  const reader = response.body?.getReader();
  const tab = { response, frames, text: '', isCut: false, pieces: 0, leave: () => leaving.abort() };
  const read = async () => {
    const decoder = new TextDecoder();
    for (let rest = ''; reader; ) {
      const { done, value } = await reader.read();
      if (done) return;
      tab.pieces += 1;
      const parts = (rest + decoder.decode(value, { stream: true })).split('\n\n');
      rest = parts.pop() ?? '';
      for (const part of parts) {
        const id = /^id: (.*)$/m.exec(part)?.[1];
        const data = /^data: (.*)$/m.exec(part)?.[1];
        if (data !== undefined) frames.push({ ...JSON.parse(data), id });
      }
    }
  };
  read().catch(() => {
    tab.isCut = true;
  });
  return Object.assign(tab, {
    lines: () => frames.flatMap((frame) => (frame.type === 'runs' ? frame.lines : [])),
    gone: () => frames.flatMap((frame) => (frame.type === 'gone' ? [frame.runId] : [])),
    events: () => frames.flatMap((frame) => (frame.type === 'run' ? [frame.event] : [])),
    states: () => frames.flatMap((frame) => (frame.type === 'store' ? [frame.isAway] : [])),
  });
}

/** A Studio whose own clock moves only with the test, on a store that others write. */
function watching(store: CheckpointStore = memoryStore(), options: StudioHostOptions = {}) {
  const clock = testClock();
  const host = studioHost({ store, ...options, studio: { clock, heartbeatMs: 1e9, ...options.studio } });
  return { clock, host };
}

/** Time passes for Studio, and its reads come to an end. */
async function poll({ clock }: { readonly clock: ReturnType<typeof testClock> }, ms = 500) {
  await clock.advance(ms);
  await settle();
}

describe('GET /watch?runs=1', () => {
  test('has the lines that are there, then only those that change (studio 19, 20)', async () => {
    const store = await leftBehind(3);
    const seen = watching(store);
    const tab = await tabOn(seen.host);
    await until(() => tab.lines().length > 0);
    expect(
      tab
        .lines()
        .map(({ runId, state }) => [runId, state])
        .sort(),
    ).toEqual([
      ['r0', 'idle'],
      ['r1', 'idle'],
      ['r2', 'idle'],
    ]);
    await poll(seen);
    expect(tab.frames).toHaveLength(1);
    await hostOf({ store }).executor.park('r1', 'by hand');
    await poll(seen);
    expect(tab.frames.slice(1)).toMatchObject([
      { type: 'runs', lines: [{ runId: 'r1', state: 'park', why: 'by hand' }] },
    ]);
  });

  test('makes the lines of hundreds of runs over several turns of the event loop: requests need not wait (studio 33)', async () => {
    const turnsFor = async (runs: number) => {
      const { host } = watching(await leftBehind(runs));
      let turns = 0;
      let isOver = false;
      const count = () => {
        turns += 1;
        if (!isOver) setImmediate(count);
      };
      setImmediate(count);
      const tab = await tabOn(host);
      await until(() => tab.lines().length > 0);
      isOver = true;
      return turns;
    };
    const few = await turnsFor(10);
    expect((await turnsFor(850)) - few).toBeGreaterThanOrEqual(3);
  });

  test('asks the store nothing without a tab, and once a poll while nothing changes (studio 18, 33)', async () => {
    const store = watchedStore({}, await leftBehind(2));
    const seen = watching(store);
    await poll(seen, 5_000);
    expect(store.methods).toEqual([]);
    const tab = await tabOn(seen.host);
    await until(() => tab.lines().length === 2);
    await settle();
    const before = store.log.length;
    for (let i = 0; i < 6; i++) await poll(seen);
    expect(store.methods.slice(before)).toEqual(Array.from({ length: 6 }, () => 'changeMark'));
    tab.leave();
    await settle();
    const left = store.log.length;
    await poll(seen, 60_000);
    expect(store.log.length).toBe(left);
    expect(seen.clock.pending).toBe(0);
  });

  test('asks nothing more if the last tab leaves during a look (studio 18)', async () => {
    const look = gate();
    let isSlow = false;
    const before = ({ method }: { readonly method: string }) =>
      isSlow && method === 'changeMark' ? look.pass() : undefined;
    const store = watchedStore({ before }, await leftBehind(1));
    const seen = watching(store);
    const tab = await tabOn(seen.host);
    await until(() => tab.lines().length === 1);
    isSlow = true;
    await poll(seen);
    await look.reached;
    tab.leave();
    await settle();
    look.open();
    await settle();
    const left = store.log.length;
    await poll(seen, 60_000);
    expect([store.log.length, seen.clock.pending]).toEqual([left, 0]);
  });

  test('is one poll for all tabs (studio 18)', async () => {
    const store = watchedStore({}, await leftBehind(2));
    const seen = watching(store);
    const tabs = [await tabOn(seen.host), await tabOn(seen.host), await tabOn(seen.host, 'runs=1', 'root:bob')];
    for (const tab of tabs) await until(() => tab.lines().length === 2);
    await settle();
    const before = store.log.length;
    for (let i = 0; i < 4; i++) await poll(seen);
    expect(store.methods.slice(before)).toEqual(Array.from({ length: 4 }, () => 'changeMark'));
    await hostOf({ store }).executor.park('r0', 'by hand');
    const parked = store.log.length;
    await poll(seen);
    expect(store.methods.slice(parked).filter((method) => method === 'listInterrupted').length).toBeLessThanOrEqual(2);
    for (const tab of tabs) expect(tab.lines().at(-1)).toMatchObject({ runId: 'r0', state: 'park' });
  });

  test('reads no list for a tab beside another one of the same reader (studio 18)', async () => {
    const store = watchedStore({}, await leftBehind(2));
    const seen = watching(store);
    const first = await tabOn(seen.host);
    await until(() => first.lines().length === 2);
    await settle();
    const before = store.log.length;
    const others: Awaited<ReturnType<typeof tabOn>>[] = [];
    for (let i = 0; i < 10; i++) others.push(await tabOn(seen.host));
    for (const tab of others) await until(() => tab.lines().length >= 2);
    expect(store.methods.slice(before)).not.toContain('listInterrupted');
    for (const tab of others) expect(new Set(tab.lines().map(({ runId }) => runId))).toEqual(new Set(['r0', 'r1']));
  });

  test('says of a run that ended how it ended, and of an erased one that it is gone, at the next poll (studio 28)', async () => {
    const store = memoryStore();
    const other = hostOf({ store, script: [hang(), hang()], retention: { records: 60_000 } });
    for (const runId of ['a', 'b']) await other.start({ runId, callerId: 'ada' });
    const seen = watching(store);
    const tab = await tabOn(seen.host);
    await until(() => tab.lines().length === 2);
    expect(tab.lines().map(({ state }) => state)).toEqual(['run', 'run']);
    await other.executor.control('a').cancel('no');
    await other.executor.get('a')?.result;
    await poll(seen);
    expect(tab.lines().at(-1)).toMatchObject({ runId: 'a', state: 'cut' });
    await other.executor.shutdown();
    await poll(seen);
    expect(tab.lines().at(-1)).toMatchObject({ runId: 'b', state: 'idle' });
    await store.delete('b');
    await poll(seen);
    expect(tab.gone()).toEqual(['b']);
  });

  test('reads the list of a store that cannot tell whether anything changed at each poll (studio 18)', async () => {
    const inner = await leftBehind(1);
    const seen = watching(plainStore(inner));
    const tab = await tabOn(seen.host);
    await until(() => tab.lines().length === 1);
    await inner.delete('r0');
    await poll(seen);
    expect(tab.gone()).toEqual(['r0']);
  });

  test('sends a caller no line of another one (studio 20)', async () => {
    const store = await leftBehind(2);
    const seen = watching(store);
    const tab = await tabOn(seen.host, 'runs=1', 'c1');
    await until(() => tab.frames.length > 0);
    expect(tab.lines().map(({ runId }) => runId)).toEqual(['r1']);
    const { executor } = hostOf({ store });
    await executor.park('r0', 'other');
    await executor.park('r1', 'ask carla');
    await poll(seen);
    expect(tab.lines().slice(1)).toMatchObject([{ runId: 'r1', state: 'park', why: 'set aside by hand' }]);
    expect(JSON.stringify(tab.frames)).not.toMatch(/carla|other|r0/);
  });

  test('says that a run is gone whose id another caller has by now, and shows nothing of it (studio 20, 28)', async () => {
    const store = await leftBehind(2);
    const seen = watching(store);
    const tab = await tabOn(seen.host, 'runs=1&run=r1', 'c1');
    await until(() => tab.lines().length > 0);
    const record = await store.load('r1');
    if (!record) throw new Error('there is no r1');
    await store.delete('r1');
    await store.save({ ...record, meta: { ...record.meta, callerId: 'c9', prompt: 'secret of c9' } });
    await poll(seen);
    await poll(seen);
    expect(tab.gone()).toContain('r1');
    expect(JSON.stringify(tab.frames)).not.toContain('secret of c9');
  });

  test('says that the store is away after two failures, asks less often, and says when it is back (studio 18, 27)', async () => {
    let isAway = false;
    const store = watchedStore(
      { before: () => (isAway ? Promise.reject(new StoreUnavailableError('no route to host')) : undefined) },
      await leftBehind(1),
    );
    const seen = watching(store);
    const tab = await tabOn(seen.host);
    await until(() => tab.lines().length === 1);
    isAway = true;
    const before = store.log.length;
    await poll(seen);
    expect(tab.states()).toEqual([]);
    await poll(seen);
    expect(tab.frames.at(-1)).toMatchObject({ type: 'store', isAway: true, code: 'STORE_UNAVAILABLE' });
    for (let i = 0; i < 60; i++) await poll(seen);
    // 0.5, 1, then 1, 2, 4, 8 and 10 s after the second failure.
    expect(store.log.length - before).toBeLessThanOrEqual(8);
    isAway = false;
    await poll(seen, 10_000);
    expect(tab.states()).toEqual([true, false]);
    const late = await tabOn(seen.host);
    await until(() => late.lines().length === 1);
    expect(late.states()).toEqual([]);
  });

  test('lists again after 10 s without a write: a process that dies writes nothing (studio 28)', async () => {
    const store = watchedStore({}, await leftBehind(1));
    const seen = watching(store);
    const tab = await tabOn(seen.host);
    await until(() => tab.lines().length === 1);
    await settle();
    const before = store.log.length;
    for (let i = 0; i < 20; i++) await poll(seen);
    expect(store.methods.slice(before).filter((method) => method !== 'changeMark').length).toBeGreaterThan(0);
  });
});

describe('GET /watch?run=', () => {
  test('passes on the events of a run of another process, and continues after the last one that the reader had (studio 19)', async () => {
    const store = memoryStore();
    const journal = { flushMs: 5 };
    const other = hostOf({
      store,
      journal,
      script: [callTool('mail', { to: 'bob' }), reply('sent')],
      tools: [mailTool],
    });
    await other.start({ runId: 'r', callerId: 'ada' });
    const host = studioHost({ store, journal });
    const tab = await tabOn(host, 'run=r');
    await until(() => tab.events().some(({ type }) => type === 'wait.opened'));
    const types = tab.events().map(({ type }) => type);
    expect(types[0]).toBe('run.started');
    const at = tab.frames.findIndex((frame) => frame.type === 'run' && frame.event.type === 'wait.opened');
    const { id = '' } = tab.frames[at] ?? {};
    expect(tab.frames[at]).toMatchObject({ event: { cursor: id } });
    tab.leave();
    const again = await tabOn(host, `run=r&after=${encodeURIComponent(id)}`);
    const [wait] = await other.executor.waiting();
    await other.executor.control('r').approve(wait?.id ?? '', { by: { id: 'ada' } });
    await until(() => again.events().some(({ type }) => type === 'run.ended'));
    const later = again.events().map(({ type }) => type);
    expect(later).not.toContain('run.started');
    expect(later).not.toContain('wait.opened');
    expect(later).toContain('wait.answered');
    await other.executor.shutdown();
  });

  test('gives a tab the newest events of a long run, and all of them where it asks, many in a piece (studio 20, 33)', async () => {
    const steps = 400;
    const store = memoryStore();
    const worker = hostOf({
      store,
      journal: true,
      tools: [toolOf('look')],
      agent: { maxSteps: steps + 1 },
      script: [...Array.from({ length: steps }, (_, at) => callTool('look', { at })), hang()],
    });
    await worker.start({ runId: 'r' });
    const host = studioHost({ store });
    const hasLast = (tab: Awaited<ReturnType<typeof tabOn>>) => () =>
      tab.events().some((event) => event.type === 'step.done' && event.step === steps);
    const whole = await tabOn(host, 'run=r&all=1');
    await until(hasLast(whole));
    expect(whole.events()[0]?.type).toBe('run.started');
    const tab = await tabOn(host, 'run=r');
    await until(hasLast(tab));
    const events = tab.events().filter(({ type }) => type !== 'step.started');
    expect(events.length).toBeLessThan(1_000);
    expect(
      whole
        .events()
        .filter(({ type }) => type !== 'step.started')
        .slice(-events.length),
    ).toEqual(events);
    expect(tab.pieces).toBeLessThan(events.length / 20);
    await worker.executor.shutdown();
  });

  test('sends no long value of an event: it names the fields that were cut (studio 6)', async () => {
    const store = memoryStore();
    const long = 'x'.repeat(100_000);
    const host = studioHost({
      store,
      script: [callTool('mail', { to: long }), hang()],
      tools: [mailTool],
      journal: { flushMs: 5 },
    });
    await host.start({ runId: 'r' });
    const tab = await tabOn(host, 'run=r');
    await until(() => tab.events().some(({ type }) => type === 'wait.opened'));
    const opened = tab.frames.find((frame) => frame.type === 'run' && frame.event.type === 'wait.opened');
    expect(opened).toMatchObject({ type: 'run', cut: ['input'] });
    expect(JSON.stringify(opened).length).toBeLessThan(20_000);
  });

  test('has the line of its run as it changes, also of one below another, and says when it is gone (studio 28)', async () => {
    const store = await leftBehind(1);
    const seen = watching(store);
    const tab = await tabOn(seen.host, 'run=r0');
    await until(() => tab.lines().length === 1);
    await hostOf({ store }).executor.park('r0', 'by hand');
    await poll(seen);
    expect(tab.lines().at(-1)).toMatchObject({ runId: 'r0', state: 'park' });
    await store.delete('r0');
    await poll(seen);
    await poll(seen);
    expect(tab.gone()).toEqual(['r0']);
  });

  test('says of a run that is not there, or is of another caller, that it is gone; the tab keeps the lines of its runs (studio 20, 28)', async () => {
    const seen = watching(await leftBehind(2));
    for (const [runId, as] of [
      ['nothing', root],
      ['x'.repeat(2_000), root],
      ['r0', 'c1'],
    ] as const) {
      const opening = tabOn(seen.host, `runs=1&run=${runId}`, as);
      await until(() => seen.clock.pending > 0);
      await seen.clock.advance(50);
      const tab = await opening;
      await until(() => tab.lines().some((line) => line.runId === 'r1'));
      expect(tab.gone()).toEqual([runId]);
      await poll(seen);
      expect(tab.states()).toEqual([]);
      expect(tab.isCut).toBe(false);
      tab.leave();
      await settle();
    }
  });

  test('is for another caller as that of an unknown run; a query that names nothing is refused (studio 20)', async () => {
    const { ask } = studioHost({ store: await leftBehind(1) });
    const unknown = await ask('/watch?run=nothing', { as: 'bob' });
    expect((await ask('/watch?run=r0', { as: 'bob' })).body).toEqual(unknown.body);
    expect(unknown.status).toBe(404);
    expect((await ask('/watch')).status).toBe(400);
    expect((await ask('/watch?runs=2')).status).toBe(400);
  });
});
