import { type MemoryStore, memoryStore, type RunCheckpoint } from 'pawl';
import { callTool, testClock } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { hostOf, settle, until } from '../fixtures/host.ts';
import { change } from '../fixtures/left-runs.ts';
import { askTool } from '../http/web-host.ts';
import { studioHost } from './studio-host.ts';

/** Half of a character: no address can have it. */
const half = '\ud800';

/** A store with the runs of this caller, each of which asks a person. */
async function asked(runs: readonly string[], callerId = 'ada'): Promise<MemoryStore> {
  const store = memoryStore();
  const host = hostOf({
    checkpoints: store,
    journal: { flushMs: 1 },
    script: runs.map(() => callTool('ask', {}, 'c')),
    tools: [askTool],
    defaults: { waitLingerMs: 1 },
  });
  for (const runId of runs) await host.start({ runId, callerId });
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
    const { ask } = studioHost({ checkpoints: store });
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
    const { ask } = studioHost({ checkpoints: store });
    const { status, body } = await ask('/runs/hostile/record');
    expect([status, body.record.openStep.calls.length]).toEqual([200, 1]);
  });
});

test('an event that no reader can take is not read again from the beginning of its journal, without a pause (studio 19, 27)', async () => {
  const store = await asked(['first']);
  const record = { ...((await store.load('first')) as RunCheckpoint) };
  const page = await store.readEvents('first', { limit: 1_000 });
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
  const readEvents: MemoryStore['readEvents'] = (...args) => {
    reads += 1;
    return store.readEvents(...args);
  };
  const host = studioHost({ checkpoints: { ...store, readEvents }, studio: { clock: testClock(), heartbeatMs: 1e9 } });
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
