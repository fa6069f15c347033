import { metrics } from '@opentelemetry/api';
import { type CheckpointStore, createExecutor, memoryStore } from 'pawl';
import { openTelemetry } from 'pawl/otel';
import { callTool, hang, reply, testClock } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { metricTable } from '../../src/otel/metric-table.ts';
import { sampleRecord } from '../../src/testing/store-contract/records.ts';
import { StoreFullError } from '../../src/values/errors.ts';
import { hostOf, settle, toolOf, until } from '../fixtures/host.ts';
import { plainStore, type StoreCall, watchedStore } from '../fixtures/watched-store.ts';
import { measuring } from './measuring.ts';

const gaugesOf = ({ points }: { points: readonly { name: string }[] }) =>
  points.map(({ name }) => name).filter((name) => metricTable[name as keyof typeof metricTable].kind === 'gauge');

/** A store with a due run of 40 s ago, one that waits for an event, and one that is parked. */
async function filled(store: ReturnType<typeof memoryStore>, now: number): Promise<void> {
  await store.save(sampleRecord('due', { updatedAt: now - 40_000 }));
  await store.save(sampleRecord('parked', { parked: { code: 'PARKED', reason: 'not today' } }));
  const claim = await store.claim('waits', 'me', 60_000);
  if (!claim) throw new Error('no claim');
  const wait = { id: 'w', kind: 'event', createdAt: 1, step: 1, name: 'payment', key: '7' } as const;
  await store.save(sampleRecord('waits', { waiting: { waits: [wait], settled: [] } }), { claim });
  await store.due.leave(claim, { readUpTo: 0 });
}

describe('executor.stats', () => {
  test('counts the runs of the store, of all processes, with the age of the oldest due run (otel 21)', async () => {
    const clock = testClock(1_000_000);
    const store = memoryStore({ clock });
    await filled(store, 1_000_000);
    const { executor } = hostOf({ store, clock });
    expect(await executor.stats()).toEqual({ live: 0, due: 1, dueAgeMs: 40_000, waiting: { event: 1 }, parked: 1 });
  });

  test('reads the store once, and writes nothing (otel 21)', async () => {
    const store = watchedStore();
    await hostOf({ store }).executor.stats();
    expect(store.methods).toEqual(['due.countRuns']);
  });

  test.for<[string, CheckpointStore | undefined, string]>([
    ['without a store', undefined, 'NOT_DURABLE'],
    ['with a store that cannot count', plainStore(), 'UNSUPPORTED'],
    [
      'with a store whose answer is nonsense',
      { ...plainStore(), due: { ...memoryStore().due, countRuns: async () => ({ live: 'many' }) as never } },
      'STORE_UNAVAILABLE',
    ],
  ])('%s rejects with a code (otel 21)', async ([, store, code]) => {
    const executor = createExecutor({ ...(store ? { store } : {}), logger: { warn: () => {} } });
    await expect(executor.stats()).rejects.toMatchObject({ code });
  });
});

describe('the gauges of a store', () => {
  test('show what it counts when the exporter asks (otel 15)', async () => {
    const clock = testClock(1_000_000);
    const store = memoryStore({ clock });
    await filled(store, 1_000_000);
    const { tracing, read } = measuring();
    hostOf({ store, clock, tracing });
    const measured = await read();
    const shown = (name: string, attributes = {}) => measured.of(name, attributes);
    expect([shown('pawl.store.up'), shown('pawl.runs.live'), shown('pawl.runs.due')]).toEqual([1, 0, 1]);
    expect([shown('pawl.due.age'), shown('pawl.runs.parked')]).toEqual([40, 1]);
    expect([
      shown('pawl.runs.waiting', { 'pawl.kind': 'event' }),
      shown('pawl.runs.waiting', { 'pawl.kind': 'approval' }),
    ]).toEqual([1, 0]);
    expect(shown('pawl.worker.places')).toBeUndefined();
  });

  test('are read at most each 5 s, however often the exporter asks (otel 15)', async () => {
    const clock = testClock(1_000_000);
    const store = watchedStore({}, memoryStore({ clock }));
    const { tracing, read } = measuring();
    hostOf({ store, clock, tracing });
    const reads = () => store.methods.filter((method) => method === 'due.countRuns').length;
    for (let i = 0; i < 50; i++) await read();
    expect(reads()).toBe(1);
    await clock.advance(5_000);
    await read();
    expect(reads()).toBe(2);
  });

  test('of a store that does not answer have no value, but for pawl.store.up, which is 0 (otel 15)', async () => {
    const store = watchedStore({
      before: ({ method }) => {
        if (method === 'due.countRuns') throw new Error('connection refused');
      },
    });
    const { tracing, read } = measuring();
    hostOf({ store, tracing });
    const measured = await read();
    expect(measured.of('pawl.store.up')).toBe(0);
    expect(measured.of('pawl.runs.due')).toBeUndefined();
  });

  test('of a store that is full show that it answers, and each refused save is counted with its code (otel 15, operations 9)', async () => {
    const clock = testClock(1_000_000);
    let isFull = true;
    const before = ({ method }: StoreCall) => {
      if (isFull && method === 'append') throw new StoreFullError('no space is left');
    };
    const store = watchedStore({ before }, memoryStore({ clock }));
    const { tracing, read } = measuring();
    const { start } = hostOf({
      store,
      clock,
      tracing,
      script: [callTool('pay'), reply('end')],
      tools: [toolOf('pay', 'once')],
    });
    const run = await start({ runId: 'a' });
    const refused = async () => (await read()).of('pawl.checkpoints.failed', { 'pawl.code': 'STORE_FULL' }) ?? 0;
    for (let saves = 0; saves < 3; saves++) {
      const before = await refused();
      await until(async () => {
        await clock.advance(1_000);
        return (await refused()) > before;
      });
      const measured = await read();
      expect([measured.of('pawl.store.up'), measured.of('pawl.runs.live')]).toEqual([1, 1]);
    }
    isFull = false;
    await until(async () => {
      await clock.advance(1_000);
      return (await read()).of('pawl.runs.ended', { 'pawl.status': 'ok' }) === 1;
    });
    expect((await run.result).status).toBe('ok');
  });

  test('of a store that cannot count are pawl.store.up alone (otel 15)', async () => {
    const { tracing, read } = measuring();
    hostOf({ store: plainStore(), tracing });
    expect(gaugesOf(await read())).toEqual(['pawl.store.up']);
  });

  test('show nothing after the shutdown: a process that ends is no store that is away (otel 15)', async () => {
    const { tracing, read } = measuring();
    const { executor } = hostOf({ store: memoryStore(), tracing });
    await executor.shutdown();
    expect(gaugesOf(await read())).toEqual([]);
  });
});

test.for<[string, (host: ReturnType<typeof hostOf>) => Promise<unknown>]>([
  ['is asked for its health', ({ executor }) => executor.health()],
  ['admits a run', ({ start }) => start({}, { drive: 'later' })],
])(
  'A provider that is registered late shows gauges and zeros once a process that works on nothing %s (otel 1, 15)',
  async ([, act]) => {
    const { provider, read } = measuring();
    const host = hostOf({ store: memoryStore(), tracing: openTelemetry({ traces: false }) });
    try {
      metrics.setGlobalMeterProvider(provider);
      expect(gaugesOf(await read())).toEqual([]);
      await act(host);
      const measured = await read();
      expect(measured.of('pawl.store.up')).toBe(1);
      expect(measured.of('pawl.runs.started', { 'pawl.agent.id': 'worker' })).toBe(0);
    } finally {
      metrics.disable();
    }
    await host.executor.shutdown();
  },
);

test('The places of a worker are shown as free and busy (otel 15)', async () => {
  const { tracing, read } = measuring();
  const { executor, start } = hostOf({ script: [hang()], store: memoryStore(), tracing });
  await start({ runId: 'a' }, { drive: 'later' });
  const worker = executor.work({ concurrency: 3 });
  await until(() => worker.stats().live === 1);
  await settle();
  const measured = await read();
  expect(measured.of('pawl.worker.places', { 'pawl.state': 'free' })).toBe(2);
  expect(measured.of('pawl.worker.places', { 'pawl.state': 'busy' })).toBe(1);
  await executor.shutdown({ drainMs: 10 });
});
