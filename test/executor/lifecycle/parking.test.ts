import { memoryStore } from 'pawl';
import { callTool, hang, reply } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { listen, ofType, typesOf } from '../../events/listening.ts';
import { hostOf, toolOf, until } from '../../fixtures/host.ts';
import { notingAudit, onlyNoted } from '../../fixtures/noting-ports.ts';
import { afterCrash, withoutMarks } from '../../fixtures/watched-store.ts';

async function left(store = memoryStore()) {
  const host = hostOf({ store, script: [hang()] });
  await host.start({ runId: 'r' });
  await host.executor.shutdown();
  return store;
}

describe('a parked run', () => {
  test('is taken up by no process, with the host’s reason, until it is unparked with all its attempts (recovery 2)', async () => {
    const store = await left();
    const { executor, agent } = hostOf({ store });
    await executor.park('r', 'a person looks');
    expect(await executor.recover()).toMatchObject({
      parked: [{ runId: 'r', reason: 'PARKED: it is parked: a person looks' }],
      resumed: [],
    });
    expect(await executor.run(agent, { runId: 'r', prompt: 'Go.' })).toMatchObject({ error: { code: 'RUN_PARKED' } });
    await executor.unpark('r');
    expect(await store.load('r')).toMatchObject({ attempts: 0 });
    expect((await store.load('r'))?.parked).toBeUndefined();
    expect(await executor.recover()).toMatchObject({ resumed: [{ runId: 'r' }] });
    expect((await executor.get('r')?.result)?.status).toBe('ok');
  });

  test('that was parked after three deaths has three attempts again when it is unparked (recovery 2)', async () => {
    const store = await left();
    const record = await store.load('r');
    if (!record) throw new Error('no record');
    await store.save({ ...record, attempts: 3, parked: { code: 'TOO_MANY_ATTEMPTS', reason: 'died' } });
    const { executor } = hostOf({ store });
    await executor.unpark('r');
    expect(await executor.recover()).toMatchObject({ resumed: [{ runId: 'r' }], parked: [] });
  });
});

describe('the person who parks a run', () => {
  test('is in its record and its journal, and so is the person who unparks it (studio 25)', async () => {
    const store = memoryStore();
    const journal = { flushMs: 5 };
    const before = hostOf({ store, journal, script: [hang()] });
    await before.start({ runId: 'r' });
    await before.executor.shutdown();
    const { executor } = hostOf({
      store,
      journal,
      redact: (text) => text.replaceAll('secret', '[hidden]'),
    });
    await executor.park('r', 'see secret', { by: { id: 'ada', name: 'Ada' } });
    const parked = { code: 'PARKED', reason: 'see [hidden]', by: { id: 'ada', name: 'Ada' } };
    expect((await store.load('r'))?.parked).toEqual(parked);
    await executor.control('r').unpark({ by: { id: 'bob' } });
    const { entries = [] } = (await store.journal.read('r', { limit: 100 })) ?? {};
    const told = entries.map(({ event }) => event).filter(({ type }) => type.endsWith('parked'));
    expect(told).toMatchObject([
      { type: 'run.parked', ...parked },
      { type: 'run.unparked', by: { id: 'bob' } },
    ]);
    await expect(executor.park('r', 'why', { by: 'ada' as never })).rejects.toThrow(TypeError);
    await expect(executor.unpark('r', { who: 'ada' } as never)).rejects.toThrow(TypeError);
    expect(await executor.recover()).toMatchObject({ resumed: [{ runId: 'r' }] });
    const types = [];
    for await (const { type } of executor.events('r')) types.push(type);
    expect(types.at(-1)).toBe('run.ended');
    await executor.shutdown();
  });

  test('needs no journal (studio 25)', async () => {
    const store = await left();
    await hostOf({ store }).executor.park('r', 'why', { by: { id: 'ada' } });
    expect((await store.load('r'))?.parked?.by).toEqual({ id: 'ada' });
  });
});

describe('a start that finds its run set aside', () => {
  test('announces `run.parked` with its code and reason, to the audit too, and nothing after it (edges 19)', async () => {
    const store = await left();
    const record = await store.load('r');
    if (!record) throw new Error('no record');
    await store.save({ ...record, attempts: 3 });
    const audit = notingAudit();
    const host = hostOf({ store, ports: { audit } });
    const run = await host.start({ runId: 'r' });
    const events = await listen(run);
    expect(typesOf(events).filter((type) => type !== 'run.status')).toEqual(['run.parked']);
    const [parked] = ofType(events, 'run.parked');
    expect(parked).toMatchObject({ code: 'TOO_MANY_ATTEMPTS', reason: expect.stringContaining('3 times in a row') });
    expect(parked?.seq).toBeGreaterThan(record.seq ?? Number.POSITIVE_INFINITY);
    const { order, told } = onlyNoted(audit);
    expect(order).toEqual(['run.parked', 'close']);
    expect(told.logEvent[0]?.[1]).toMatchObject({ code: 'TOO_MANY_ATTEMPTS', reason: parked?.reason });
  });
});

describe('a run that was set aside because the outcome of a `once` call is unknown', () => {
  test('continues when it is unparked: its model reads of it, and the call is not made again (recovery 2, promise c)', async () => {
    const store = memoryStore();
    let sent = 0;
    const tools = [
      toolOf('send', 'once', () => {
        sent += 1;
        return new Promise(() => {});
      }),
    ];
    await hostOf({ store, script: [callTool('send', {}, 'c1')], tools }).start({ runId: 'r' });
    await until(() => sent === 1);
    const left = await afterCrash(store);
    const host = hostOf({ store: left, script: [reply('done')], tools, onUnknownOutcome: 'park' });
    expect((await host.executor.recover()).parked).toMatchObject([{ runId: 'r' }]);
    expect((await host.executor.recover()).parked).toMatchObject([{ runId: 'r' }]);
    await host.executor.unpark('r');
    expect((await host.executor.recover()).resumed).toEqual([{ runId: 'r' }]);
    expect(await host.executor.get('r')?.result).toMatchObject({ status: 'ok', output: 'done' });
    expect(JSON.stringify(host.model.calls[0]?.messages)).toContain('unknown');
    expect(sent).toBe(1);
  });
});

describe('parking', () => {
  test('is refused while the run is live here or claimed elsewhere, and for a run that there is not', async () => {
    const store = memoryStore();
    const host = hostOf({ store, script: [hang()] });
    await host.start({ runId: 'r' });
    const other = hostOf({ store });
    for (const { executor } of [host, other])
      await expect(executor.park('r', 'x')).rejects.toMatchObject({ code: 'RUN_OWNED_ELSEWHERE' });
    await expect(other.executor.unpark('nobody')).rejects.toMatchObject({ code: 'RUN_NOT_FOUND' });
    await expect(hostOf().executor.park('r', 'x')).rejects.toMatchObject({ code: 'NOT_DURABLE' });
    await host.executor.shutdown();
  });

  test('is undone also when the answer of the store got lost: the run continues', async () => {
    const store = await left();
    const record = await store.load('r');
    if (!record) throw new Error('no record');
    await store.save({ ...record, attempts: 3, parked: { code: 'TOO_MANY_ATTEMPTS', reason: 'died' } });
    const append: typeof store.append = async (...args) => {
      await store.append(...args);
      throw new Error('the answer was lost');
    };
    const unheard = hostOf({ store: { ...store, append } as typeof store });
    await expect(unheard.executor.unpark('r')).rejects.toThrow('lost');
    expect((await hostOf({ store }).executor.recover()).resumed).toMatchObject([{ runId: 'r' }]);
  });

  test('and cancelling count no start, also when the store or the host refuses them again and again (recovery 2)', async () => {
    const store = await left();
    const full = { ...store, append: () => Promise.reject(new Error('full')) };
    const refusing = hostOf({ store: full });
    for (let i = 0; i < 5; i++) await expect(refusing.executor.park('r', 'x')).rejects.toThrow('full');
    const away = hostOf({ store: withoutMarks(store), onOutcome: () => Promise.reject(new Error('away')) });
    for (let i = 0; i < 5; i++) await expect(away.executor.control('r').cancel()).rejects.toThrow('away');
    const told: string[] = [];
    const host = hostOf({ store, onOutcome: ({ status }) => void told.push(status) });
    expect((await host.executor.recover()).parked).toEqual([]);
    await until(() => told.length > 0);
    expect(told).toEqual(['cancelled']);
  });

  test('leaves a run that is not parked, and its messages, as they were', async () => {
    const store = await left();
    const before = await store.load('r');
    await hostOf({ store }).executor.unpark('r');
    expect(await store.load('r')).toEqual({ ...before, attempts: 0, revision: (before?.revision ?? 0) + 1 });
  });

  test('works on a store with the four methods only', async () => {
    const full = await left();
    const { save, load, delete: remove, listInterrupted } = full;
    const store = { save, load, delete: remove, listInterrupted };
    const { executor } = hostOf({ store, script: [reply('done')] });
    await executor.park('r', 'later');
    expect((await full.load('r'))?.parked).toEqual({ code: 'PARKED', reason: 'later' });
    await executor.unpark('r');
    expect(await executor.recover()).toMatchObject({ resumed: [{ runId: 'r' }] });
  });
});
