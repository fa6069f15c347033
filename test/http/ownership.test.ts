import { createPalette, defineAgent, type MemoryStore, memoryStore } from 'pawl';
import { callTool, hang, reply } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { answeringModel } from '../fixtures/answering-model.ts';
import { asking, askReviewer } from '../fixtures/family.ts';
import { hostOf, until } from '../fixtures/host.ts';
import { change } from '../fixtures/left-runs.ts';
import { mailTool, webHost } from './web-host.ts';

const journal = { flushMs: 5 } as const;

/** Puts the run `r` of ada somewhere. */
type Place = (store: MemoryStore) => Promise<{ readonly host: ReturnType<typeof webHost> }>;

/** Another process that has begun the run. */
async function elsewhere(store: MemoryStore, options: Parameters<typeof hostOf>[0] = {}) {
  const host = hostOf({ store, journal, script: [hang()], defaults: { waitLingerMs: 1 }, ...options });
  await host.start({ runId: 'r', callerId: 'ada' });
  return host;
}

async function leftBy(store: MemoryStore) {
  const host = await elsewhere(store);
  await until(() => host.model.calls.length === 1);
  await host.executor.shutdown();
}

const places: readonly (readonly [name: string, state: string, place: Place])[] = [
  [
    'live here',
    'run',
    async (store) => {
      const host = webHost({ store, script: [hang()] });
      await host.start({ runId: 'r', callerId: 'ada' });
      return { host };
    },
  ],
  [
    'live in another process',
    'run',
    async (store) => {
      await elsewhere(store);
      return { host: webHost({ store }) };
    },
  ],
  [
    'resting',
    'you',
    async (store) => {
      const other = await elsewhere(store, { script: [callTool('mail', {})], tools: [mailTool] });
      await until(() => other.executor.runs.get().length === 0);
      return { host: webHost({ store, tools: [mailTool] }) };
    },
  ],
  [
    'interrupted',
    'idle',
    async (store) => {
      await leftBy(store);
      return { host: webHost({ store }) };
    },
  ],
  [
    'parked',
    'park',
    async (store) => {
      await leftBy(store);
      await change(store, 'r', (record) => ({ ...record, parked: { code: 'PARKED', reason: 'by hand' } }));
      return { host: webHost({ store }) };
    },
  ],
  [
    'ended, with its record kept',
    'ok',
    async (store) => {
      const other = await elsewhere(store, { script: [reply('done')] });
      await other.executor.get('r')?.result;
      return { host: webHost({ store }) };
    },
  ],
  [
    'ended, with its record not delivered',
    'ok',
    async (store) => {
      const other = await elsewhere(store, {
        script: [reply('done')],
        onOutcome: () => Promise.reject(new Error('no')),
      });
      await other.executor.get('r')?.result;
      await other.executor.shutdown();
      return { host: webHost({ store }) };
    },
  ],
];

describe.for(places)('a run that is %s', ([, state, place]) => {
  test('is seen by its caller and by who sees everything; to others it is as an unknown one (web 19, 39)', async () => {
    const { host } = await place(memoryStore());
    const mine = await host.ask('/runs/r');
    expect([mine.status, mine.body.state]).toEqual([200, state]);
    expect((await host.ask('/runs/r', { as: 'root:boss' })).body.state).toBe(state);
    const unknown = await host.ask('/runs/unknown', { as: 'bob' });
    for (const as of ['bob', 'Ada', 'adaa']) {
      const { status, body, headers } = await host.ask('/runs/r', { as });
      expect({ status, body, headers: [...headers] }).toEqual({
        status: unknown.status,
        body: unknown.body,
        headers: [...unknown.headers],
      });
    }
    const listed = async (as: string) => (await host.ask('/runs', { as })).body.items.length;
    expect(await listed('bob')).toBe(0);
    expect((await host.ask('/waiting', { as: 'bob' })).body.items).toEqual([]);
    expect((await host.ask('/waiting?runId=r', { as: 'bob' })).body.items).toEqual([]);
  });
});

describe('a run below another one', () => {
  /** A host in which the run `r` of ada has put a reviewer to work, who asks for an approval. */
  async function withChild(store: MemoryStore) {
    const model = answeringModel(asking(askReviewer, () => callTool('mail', {})));
    const reviewer = defineAgent({ id: 'reviewer', instructions: 'Review.', tools: [mailTool] });
    const host = webHost({
      models: { fast: model },
      agent: { subAgents: ['reviewer'] },
      ports: { palette: createPalette({ agents: [reviewer] }) },
      store,
    });
    await host.start({ runId: 'r', callerId: 'ada' });
    await until(async () => (await host.executor.waiting({ kind: 'approval' })).length === 1);
    return host;
  }

  test('is no wait of the run above it for a person: GET /waiting has it only where it is asked for (web 17)', async () => {
    const host = await withChild(memoryStore());
    const kindsOf = async (path: string) => (await host.ask(path)).body.items.map(({ kind }: { kind: string }) => kind);
    await until(async () => (await host.executor.waiting({ kind: 'child' })).length === 1);
    expect(await kindsOf('/waiting')).toEqual(['approval']);
    expect(await kindsOf('/waiting?runId=r')).toEqual(['approval']);
    expect(await kindsOf('/waiting?kind=child')).toEqual(['child']);
    expect((await kindsOf('/waiting?kind=child&kind=approval')).sort()).toEqual(['approval', 'child']);
  });

  test('belongs to the caller of its root, even if its own record names another (web 19, 39)', async () => {
    const store = memoryStore();
    const host = await withChild(store);
    const child = (await host.executor.list()).find(({ runId }) => runId.startsWith('~'));
    const runId = child?.runId ?? '';
    const path = `/runs/${encodeURIComponent(runId)}`;
    expect((await host.ask(path)).body).toMatchObject({ runId, rootRunId: 'r', parentRunId: 'r' });
    expect((await host.ask(path, { as: 'bob' })).status).toBe(404);
    const lines = (await host.ask('/runs')).body.items;
    expect(lines).toMatchObject([{ runId: 'r', state: 'you', children: 1 }]);
    expect(lines).toHaveLength(1);
    const [wait] = (await host.ask('/waiting?kind=approval')).body.items;
    expect(wait).toMatchObject({ runId, rootRunId: 'r' });
    expect((await host.ask(`${path}/answers/${wait.id}`, { as: 'bob', body: { how: 'deny' } })).status).toBe(404);
    expect((await host.ask(`/runs/r/answers/${wait.id}`, { as: 'bob', body: { how: 'deny' } })).status).toBe(404);
    await host.executor.shutdown();
    // A record that claims another caller than its root has.
    await change(store, runId, (record) => ({ ...record, meta: { ...record.meta, callerId: 'bob' } }));
    const later = webHost({ store });
    expect((await later.ask(path, { as: 'bob' })).status).toBe(404);
    expect((await later.ask('/waiting', { as: 'bob' })).body.items).toEqual([]);
    expect((await later.ask(path)).status).toBe(200);
    // A root that is below another run is none.
    await change(store, 'r', (record) => ({ ...record, parent: { runId, callId: 'c', rootRunId: runId } }));
    expect((await later.ask(path)).status).toBe(404);
    // Its root is gone: nothing says whose it is.
    await store.delete('r');
    expect((await later.ask(path)).status).toBe(404);
    expect((await later.ask(path, { as: 'bob' })).status).toBe(404);
    expect((await later.ask(path, { as: 'root:boss' })).status).toBe(200);
  });
});
