import { defineAgent, type ListCursor, type ListedRun, type ListRunsOptions, memoryStore } from 'pawl';
import { hang, reply } from 'pawl/testing';
import { afterEach, describe, expect, test } from 'vitest';
import { sampleRecord } from '../../../src/testing/store-contract/records.ts';
import { type HostOptions, hostOf, until } from '../../fixtures/host.ts';
import { change } from '../../fixtures/left-runs.ts';
import { watchedStore } from '../../fixtures/watched-store.ts';

const other = defineAgent({ id: 'other', instructions: 'Work.' });
const left: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const leave of left.splice(0)) await leave();
});
const listingHost = (options: HostOptions) => {
  const host = hostOf({ script: Array.from({ length: 8 }, () => hang()), ...options });
  left.push(() => host.executor.shutdown());
  return host;
};
type Host = ReturnType<typeof listingHost>;
const ids = (page: readonly ListedRun[]) => page.map(({ runId }) => runId);

/** A store with these records, in this order. */
async function storeOf(runIds: readonly string[]) {
  const store = memoryStore();
  for (const [i, runId] of runIds.entries()) {
    const record = sampleRecord(runId, { updatedAt: 1_000 + i });
    await store.save({ ...record, meta: { ...record.meta, agentId: 'worker' } });
  }
  return store;
}

/** All pages, as a caller reads them who keeps only plain data between two of them. */
async function pagesOf({ executor }: Host, options: ListRunsOptions & { readonly limit: number }) {
  const pages: string[][] = [];
  let after: ListCursor | undefined;
  for (;;) {
    const page = await executor.list({ ...options, ...(after ? { after } : {}) });
    pages.push(ids(page));
    if (page.length < options.limit) return pages;
    after = JSON.parse(JSON.stringify(page.at(-1))) as ListCursor;
  }
}

describe('executor.list', () => {
  test('gives pages: the last line of one is where the next begins, first the runs that are live here, then the stored ones', async () => {
    const host = listingHost({ store: await storeOf(['r0', 'r1', 'r2', 'r3', 'r4']) });
    for (const runId of ['b', 'a', 'c']) await host.start({ runId });
    expect(await pagesOf(host, { limit: 2 })).toEqual([['a', 'b'], ['c', 'r0'], ['r1', 'r2'], ['r3', 'r4'], []]);
    expect(await pagesOf(host, { limit: 3 })).toEqual([
      ['a', 'b', 'c'],
      ['r0', 'r1', 'r2'],
      ['r3', 'r4'],
    ]);
    expect(ids(await host.executor.list())).toEqual(['a', 'b', 'c', 'r0', 'r1', 'r2', 'r3', 'r4']);
  });

  test('of a caller asks the store for that caller, and for pages as long as its own', async () => {
    const store = watchedStore({}, await storeOf(Array.from({ length: 9 }, (_, i) => `s${i}`)));
    const { executor } = listingHost({ store });
    const asked = () => store.log.splice(0).filter(({ method }) => method === 'listInterrupted');
    asked();
    await executor.list({ callerId: 'ada', limit: 3 });
    const first = asked().map(({ args }) => args[0]);
    expect(first).toContainEqual({ callerId: 'ada', limit: 3 });
    expect(first).toContainEqual({ callerId: 'ada', limit: 3, status: 'waiting' });
    await executor.waiting({ callerId: 'ada', limit: 3 });
    expect(asked().map(({ args }) => args[0])).toContainEqual({ callerId: 'ada', limit: 3, status: 'waiting' });
    await executor.list({ limit: 3 });
    expect(asked().map(({ args }) => args[0])).toEqual([{ limit: 3 }, { limit: 3, status: 'waiting' }]);
  });

  test('is bounded to 1,000 lines where no limit is given, and its pages pass over runs that are live here', async () => {
    const host = listingHost({ store: await storeOf(Array.from({ length: 1_203 }, (_, i) => `s${i}`)) });
    await host.start({ runId: 'live' });
    const first = await host.executor.list();
    expect(first).toHaveLength(1_000);
    const last = first.at(-1) as ListedRun;
    const rest = await host.executor.list({ after: last });
    expect(new Set(ids([...first, ...rest])).size).toBe(1_204);
    expect(rest).toHaveLength(204);
  });

  test('takes a status, or several, and an agent', async () => {
    const store = await storeOf(['r0', 'r1', 'r2', 'r3']);
    await change(store, 'r1', (record) => ({ ...record, parked: { code: 'X', reason: 'by hand' } }));
    await change(store, 'r2', (record) => ({ ...record, meta: { ...record.meta, agentId: 'other' } }));
    // As a host's own store may say it: without a time.
    const torn = { runId: 'torn', status: 'quarantined', reason: 'CHECKPOINT_CORRUPT: torn' } as const;
    const listInterrupted: typeof store.listInterrupted = async (options) => {
      const page = await store.listInterrupted(options);
      return options?.after ? page : [torn, ...page];
    };
    const host = listingHost({ store: { ...store, listInterrupted } });
    await host.start({ runId: 'a' });
    await host.executor.start(other, { runId: 'b', prompt: 'Go.' });
    const list = async (options: ListRunsOptions) => ids(await host.executor.list(options)).toSorted();
    expect(await list({ status: 'live' })).toEqual(['a', 'b']);
    expect(await list({ status: 'parked' })).toEqual(['r1']);
    expect(await list({ status: ['live', 'parked'] })).toEqual(['a', 'b', 'r1']);
    expect(await list({ status: 'interrupted', agentId: 'worker' })).toEqual(['r0', 'r3']);
    expect(await list({ agentId: 'other' })).toEqual(['b', 'r2']);
    expect(await list({ status: 'quarantined' })).toEqual(['torn']);
    expect((await pagesOf(host, { limit: 1 })).flat()).toEqual(['a', 'b', 'torn', 'r0', 'r1', 'r2', 'r3']);
    expect(await list({ status: 'interrupted', agentId: 'worker', limit: 1 })).toHaveLength(1);
  });

  test('says live of a run that another process works on, with its owner, and interrupted once that process has left it', async () => {
    const store = memoryStore();
    const first = listingHost({ store });
    const second = listingHost({ store });
    await first.start({ runId: 'r' });
    await until(() => first.model.calls.length === 1);
    const [line] = await second.executor.list();
    expect(line).toMatchObject({ runId: 'r', status: 'live', meta: { agentId: 'worker' } });
    expect(line?.owner?.split('|')[3]).toBe(String(process.pid));
    expect(await second.executor.list({ status: 'interrupted' })).toEqual([]);
    const [own] = await first.executor.list();
    expect(own).toMatchObject({ runId: 'r', status: 'live', agentId: 'worker', state: 'running.calling-model' });
    expect(own).not.toHaveProperty('owner');
    await first.executor.shutdown();
    const [after] = await second.executor.list();
    expect(after).toMatchObject({ runId: 'r', status: 'interrupted' });
    expect(after).not.toHaveProperty('owner');
  });

  test('lists the live runs of an executor without a store, by pages too', async () => {
    const host = listingHost({});
    for (const runId of ['c', 'a', 'b']) await host.start({ runId });
    expect(await pagesOf(host, { limit: 2 })).toEqual([['a', 'b'], ['c']]);
  });

  test('does not list a start that was refused or answered, but still lists the stored run of that id', async () => {
    const store = await storeOf(['stored', 'parked']);
    const parked = { code: 'X', reason: 'by hand' };
    await change(store, 'parked', (record) => ({ ...record, parked }));
    const host = listingHost({ script: [reply('done')], store });
    await host.run({ runId: 'ended' });
    const starts = await Promise.all([
      host.start({ runId: 'stored', prompt: 'Another.' }),
      host.start({ runId: 'parked', prompt: 'Another.' }),
      host.start({ runId: '~refused' }),
      host.start({ runId: 'ended' }),
    ]);
    const page = await host.executor.list();
    expect(starts.map(({ accepted }) => accepted)).toEqual(['refused', 'refused', 'refused', 'ended']);
    expect(page.map(({ runId, status }) => [runId, status])).toEqual([
      ['stored', 'interrupted'],
      ['parked', 'parked'],
    ]);
    await Promise.all(starts.map(({ result }) => result));
  });

  test.for([
    [{ limit: 0 }, 'limit must be a whole number above 0, not 0'],
    [{ limit: 1.5 }, 'limit must be a whole number above 0, not 1.5'],
    [{ after: 'r1' }, 'after must be the last line of a page'],
    [{ after: { runId: 'r1', updatedAt: '5' } }, 'after must be the last line of a page'],
    [{ after: { runId: 'r1', updatedAt: null } }, 'after must be the last line of a page'],
    [{ agentId: 5 }, 'agentId must be the id of an agent, not the number 5'],
    [{ agentId: '' }, "agentId must be the id of an agent, not ''"],
    [{ agentId: ['worker'] }, 'agentId must be the id of an agent, not an array'],
    [
      { status: [] },
      'status must be one or more of live, interrupted, waiting, parked, quarantined, not an empty list',
    ],
    [{ status: 5 }, 'status must be one or more of live, interrupted, waiting, parked, quarantined, not the number 5'],
    [{ status: null }, 'status must be one or more of live, interrupted, waiting, parked, quarantined, not null'],
    [
      { status: ['live', 5] },
      'there is no status the number 5; known: live, interrupted, waiting, parked, quarantined',
    ],
    [{ status: 'dead' }, 'there is no status "dead"; known: live, interrupted, waiting, parked, quarantined'],
    [{ agent: 'worker' }, 'agentId'],
  ] as const)('refuses options that cannot be, and says what is allowed: %j', async ([options, message]) => {
    const { executor } = listingHost({});
    await expect(async () => executor.list(options as ListRunsOptions)).rejects.toThrow(TypeError);
    await expect(async () => executor.list(options as ListRunsOptions)).rejects.toThrow(message);
  });
});
