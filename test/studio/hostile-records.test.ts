import { createPalette, defineAgent, type MemoryStore, memoryStore, type RunCheckpoint } from 'pawl';
import { callTool, testClock } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { CheckpointCorruptError } from '../../src/values/errors.ts';
import { answeringModel } from '../fixtures/answering-model.ts';
import { asking, askReviewer } from '../fixtures/family.ts';
import { hostOf, settle, until } from '../fixtures/host.ts';
import { change, leftBehind } from '../fixtures/left-runs.ts';
import { plainStore } from '../fixtures/watched-store.ts';
import { askTool, mailTool } from '../http/web-host.ts';
import { studioHost } from './studio-host.ts';

/** Half of a character: no address can have it. */
const half = '\ud800';

/** A store with the runs of this caller, each of which asks a person. */
async function asked(runs: readonly string[], callerId = 'ada'): Promise<MemoryStore> {
  const store = memoryStore();
  const host = hostOf({
    store,
    journal: { flushMs: 1 },
    script: runs.map(() => callTool('ask', {}, 'c')),
    tools: [askTool],
    defaults: { waitLingerMs: 1 },
  });
  for (const runId of runs) await (await host.start({ runId, callerId })).result;
  await until(() => host.executor.runs.get().length === 0);
  return store;
}

describe('an id with half of a character', () => {
  test('of a wait hides neither its run nor the other waits (studio 13, 27)', async () => {
    const store = await asked(['hostile', 'other']);
    const withHalf = ({ waiting, ...record }: RunCheckpoint): RunCheckpoint => ({
      ...record,
      waiting: { settled: [], waits: (waiting?.waits ?? []).map((wait) => ({ ...wait, id: half })) },
    });
    await change(store, 'hostile', withHalf);
    const { ask } = studioHost({ store });
    const { status, body } = await ask('/waiting');
    expect(status).toBe(200);
    expect(body.items.map(({ runId }: { runId: string }) => runId).sort()).toEqual(['hostile', 'other']);
    for (const what of ['', '/record']) expect((await ask(`/runs/hostile${what}`)).status).toBe(200);
  });

  test('of a call hides no record (studio 13, 27)', async () => {
    const store = await asked(['hostile']);
    await change(store, 'hostile', ({ openStep, ...record }) => ({
      ...record,
      ...(openStep
        ? { openStep: { ...openStep, calls: openStep.calls.map((call) => ({ ...call, callId: half })) } }
        : {}),
    }));
    const { ask } = studioHost({ store });
    const { status, body } = await ask('/runs/hostile/record');
    expect([status, body.record.openStep.calls.length]).toEqual([200, 1]);
  });
});

test('an event that no reader can take is not read again from the beginning of its journal, without a pause (studio 19, 27)', async () => {
  const store = await asked(['first']);
  const record = { ...((await store.load('first')) as RunCheckpoint) };
  const page = await store.journal.read('first', { limit: 1_000 });
  const hostile = { ...record, meta: { ...record.meta, runId: 'hostile' } };
  const entries = (page?.entries ?? []).map((entry) => ({ ...entry, event: { ...entry.event, runId: 'hostile' } }));
  const last = entries.at(-1);
  const piece = { type: 'model.delta', step: 9, kind: 'text', block: 0, offset: 0, text: null, runId: 'hostile' };
  const event = { ...piece, seq: 99, at: 0 } as never;
  const claim = (await store.claim('hostile', 'by hand', 60_000)) ?? undefined;
  await store.save(hostile, {
    claim,
    events: { entries: [...entries, { place: (last?.place ?? 0) + 1, keep: 'kept', event }] },
  });
  let reads = 0;
  const read: MemoryStore['journal']['read'] = (...args) => {
    reads += 1;
    return store.journal.read(...args);
  };
  const checkpoints: MemoryStore = { ...store, journal: { ...store.journal, read } };
  const host = studioHost({ store: checkpoints, studio: { clock: testClock(), heartbeatMs: 1e9 } });
  const { body } = await host.open('/watch?run=hostile');
  const reader = body?.getReader();
  let text = '';
  while (!text.includes('wait.opened')) text += new TextDecoder().decode((await reader?.read())?.value);
  await settle();
  const before = reads;
  for (let turn = 0; turn < 20; turn++) await settle();
  expect(reads).toBe(before);
  expect(text.split('run.started')).toHaveLength(2);
  await reader?.cancel();
});

describe('a caller who sees only its own runs', () => {
  test('has no row of a run below the run of another caller, even if its own record names this one (studio 11)', async () => {
    const store = memoryStore();
    const reviewer = defineAgent({ id: 'reviewer', instructions: 'Review.', tools: [mailTool] });
    const family = hostOf({
      store,
      models: { fast: answeringModel(asking(askReviewer, () => callTool('mail', {}))) },
      agent: { subAgents: ['reviewer'] },
      ports: { palette: createPalette({ agents: [reviewer] }) },
      defaults: { waitLingerMs: 1 },
    });
    await (await family.start({ runId: 'r', callerId: 'ada' })).result;
    await until(() => family.executor.runs.get().length === 0);
    const [wait] = await family.executor.waiting({ kind: 'approval' });
    const child = wait?.runId ?? '';
    const { ask } = studioHost({ store });
    const rowsOf = async (as: string) =>
      (await ask('/store/doctor', { as })).body.items.map(({ line }: { line: { runId: string } }) => line.runId).sort();
    expect(await rowsOf('ada')).toEqual(['r', child]);
    await change(store, child, (record) => ({ ...record, meta: { ...record.meta, callerId: 'bob' } }));
    expect(await rowsOf('bob')).toEqual([]);
    expect(await rowsOf('root:eve')).toEqual(['r', child]);
  });

  test('has no line of a run of another caller for which its own record says that it waits (studio 1, 7)', async () => {
    const store = await asked(['secret', 'own']);
    await change(store, 'own', ({ waiting, meta, ...record }) => {
      const waits = (waiting?.waits ?? []).map((wait) => ({ ...wait, kind: 'child', childRunId: 'secret' }) as never);
      return { ...record, meta: { ...meta, callerId: 'bob' }, waiting: { settled: [], waits } };
    });
    const { ask } = studioHost({ store });
    const { status, body } = await ask('/runs/own/record', { as: 'bob' });
    expect([status, body.children]).toEqual([200, [{ runId: 'secret' }]]);
    expect((await ask('/runs/own/record')).body.children).toMatchObject([{ line: { runId: 'secret', state: 'you' } }]);
  });

  test('reads no text of the store about a record that cannot be read (studio 2, 11)', async () => {
    const store = await leftBehind(1);
    // Who asks for a run finds it first, without its messages.
    const damaged = (isFound: boolean) => {
      const load: MemoryStore['load'] = (runId, options) =>
        isFound && options?.messages === false
          ? store.load(runId, options)
          : Promise.reject(new CheckpointCorruptError('/srv/a.db'));
      return studioHost({ store: { ...plainStore(store), load } });
    };
    for (const path of ['/store/doctor', '/runs/r0/record', '/runs/r0/messages']) {
      const { ask } = damaged(path.startsWith('/runs'));
      const own = JSON.stringify((await ask(path, { as: 'c0' })).body);
      expect([path, own.includes('cannot be read'), own.includes('/srv')]).toEqual([path, true, false]);
      expect(JSON.stringify((await ask(path)).body)).toContain('/srv/a.db');
    }
  });
});
