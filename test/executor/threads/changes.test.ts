import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { encrypt, memoryStore } from 'pawl';
import { sqliteStore } from 'pawl/stores/sqlite';
import { callTool, reply } from 'pawl/testing';
import { afterAll, describe, expect, test } from 'vitest';
import { gate, toolOf } from '../../fixtures/host.ts';
import { textsIn, threadHost } from './thread-host.ts';

const folder = mkdtempSync(join(tmpdir(), 'pawl-threads-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

let files = 0;
const path = () => join(folder, `${files++}.db`);
const codec = encrypt({ keys: { k: randomBytes(32).toString('base64') }, current: 'k' });
const stores = {
  memory: () => memoryStore(),
  SQLite: () => sqliteStore({ path: path() }),
  'encrypted SQLite': () => sqliteStore({ path: path(), codec }),
};

type Given = ReturnType<typeof threadHost>;
type Thread = Given['thread'];

const textsOf = async (thread: Thread) => textsIn((await thread.messages()).map(({ message }) => message));

/** A thread with three turns. */
async function threeTurns(store: ReturnType<(typeof stores)['memory']>) {
  const script = Array.from({ length: 9 }, (_, i) => reply(`answer ${i + 1}`));
  const given = threadHost({ store, script });
  const runIds: string[] = [];
  for (const id of ['m1', 'm2', 'm3']) {
    const { runId } = await given.thread.send({ id, text: id });
    await given.ended(runId);
    runIds.push(runId);
  }
  return { ...given, runIds, store };
}

const kept = async (store: ReturnType<(typeof stores)['memory']>, runIds: readonly string[]) => {
  const records = await Promise.all(runIds.map((runId) => store.load(runId, { ended: true })));
  return records.map((record) => record !== null);
};

describe.each(Object.entries(stores))('a thread in %s', (_, makeStore) => {
  test('rewound to a message keeps its turn and drops the later ones, with their records (web 15)', async () => {
    const { thread, store, runIds, host, ended } = await threeTurns(makeStore());
    await thread.rewind('m2');
    expect(await textsOf(thread)).toEqual(['m1', 'answer 1', 'm2', 'answer 2']);
    expect(await kept(store, runIds)).toEqual([true, true, false]);
    expect(await thread.turn('m3')).toBeUndefined();
    await ended((await thread.send({ id: 'm4', text: 'm4' })).runId);
    expect(textsIn(host.model.calls.at(-1)?.messages ?? [])).toEqual(['m1', 'answer 1', 'm2', 'answer 2', 'm4']);
  });

  test('rewound before a message lets it be said again, in another run (web 15)', async () => {
    const { thread, runIds, ended } = await threeTurns(makeStore());
    await thread.rewind(`${runIds[1]}:m`, { before: true });
    expect(await textsOf(thread)).toEqual(['m1', 'answer 1']);
    const again = await thread.send({ id: 'm2', text: 'm2, edited' });
    expect(again.state).toBe('started');
    expect(runIds).not.toContain(again.runId);
    await ended(again.runId);
    expect(await textsOf(thread)).toEqual(['m1', 'answer 1', 'm2, edited', 'answer 4']);
    await thread.rewind('m1', { before: true });
    expect(await textsOf(thread)).toEqual([]);
  });

  test('is not rewound beside a live run (web 15)', async () => {
    const working = gate<string>();
    const tools = [toolOf('work', 'read', () => working.pass())];
    const script = [reply('one'), callTool('work', {}), reply('two')];
    const { thread, ended } = threadHost({ store: makeStore(), tools, script });
    await ended((await thread.send({ id: 'm1', text: 'm1' })).runId);
    const { runId } = await thread.send({ id: 'm2', text: 'm2' });
    await working.reached;
    await expect(thread.rewind('m1')).rejects.toMatchObject({ code: 'THREAD_BUSY' });
    await expect(thread.fork('m2', 'other')).rejects.toMatchObject({ code: 'THREAD_BUSY' });
    working.open('worked');
    await ended(runId);
    expect(await textsOf(thread)).toEqual(['m1', 'one', 'm2', 'two']);
  });

  test('forked shares the turns up to a message, and each goes its own way (web 15)', async () => {
    const { thread, host, ended, store, runIds } = await threeTurns(makeStore());
    await thread.fork('m2', 'fork');
    const fork = host.executor.thread('fork', { agent: host.agent, callerId: 'ada' });
    expect(await textsOf(fork)).toEqual(['m1', 'answer 1', 'm2', 'answer 2']);
    await ended((await thread.send({ id: 'm4', text: 'here' })).runId);
    const sent = await fork.send({ id: 'm4', text: 'there' });
    await expect.poll(async () => (await fork.turn('m4'))?.state).toBe('ended');
    expect(textsIn(host.model.calls.at(-1)?.messages ?? [])).toEqual(['m1', 'answer 1', 'm2', 'answer 2', 'there']);
    expect(await textsOf(thread)).toEqual(['m1', 'answer 1', 'm2', 'answer 2', 'm3', 'answer 3', 'here', 'answer 4']);
    expect(await kept(store, [...runIds, sent.runId])).toEqual([true, true, true, true]);
    await expect(thread.fork('m1', 'fork')).rejects.toMatchObject({ code: 'THREAD_EXISTS' });
    await expect(thread.fork('m9', 'more')).rejects.toMatchObject({ code: 'THREAD_MISSING' });
  });

  test('deleted leaves what a fork uses, and the last one leaves nothing (web 15)', async () => {
    const { thread, host, store, runIds } = await threeTurns(makeStore());
    await thread.fork('m2', 'fork');
    const fork = host.executor.thread('fork', { agent: host.agent, callerId: 'ada' });
    await thread.delete();
    expect(await thread.messages()).toEqual([]);
    expect(await kept(store, runIds)).toEqual([true, true, false]);
    expect(await textsOf(fork)).toEqual(['m1', 'answer 1', 'm2', 'answer 2']);
    expect((await host.executor.threads()).map(({ id }) => id)).toEqual(['fork']);
    await fork.delete();
    expect(await kept(store, runIds)).toEqual([false, false, false]);
    expect(await host.executor.threads()).toEqual([]);
    expect(await Promise.all(runIds.map((runId) => store.outcomes.find(runId)))).toEqual([null, null, null]);
  });

  test('deleted beside a live run cancels it, and the messages that wait are gone (web 15)', async () => {
    const working = gate<string>();
    const tools = [toolOf('work', 'read', () => working.pass())];
    const { thread, host } = threadHost({
      store: makeStore(),
      tools,
      script: [callTool('work', {}), reply('two')],
    });
    const { runId } = await thread.send({ id: 'm1', text: 'm1' });
    await working.reached;
    await thread.send({ id: 'm2', text: 'm2' });
    await thread.delete();
    expect(host.executor.get(runId)?.accepted).toBe('ended');
    expect(await host.executor.threads()).toEqual([]);
    expect(host.model.calls).toHaveLength(1);
    const again = await thread.send({ id: 'm1', text: 'm1' });
    expect(again.state).toBe('started');
  });

  test('is read in pages, and threads are listed in pages, the last changed first (web 17)', async () => {
    const { thread, host, ended } = await threeTurns(makeStore());
    const first = await thread.messages({ limit: 4 });
    const rest = await thread.messages({ after: first.at(-1)?.index ?? 0, limit: 4 });
    expect([...first, ...rest].map(({ index }) => index)).toEqual([0, 1, 2, 3, 4, 5]);
    for (const id of ['a', 'b', 'c']) {
      const other = host.executor.thread(id, { agent: host.agent, callerId: id === 'c' ? 'eve' : 'ada' });
      const { runId } = await other.send({ id: 'm1', text: 'x' });
      await expect.poll(async () => (await other.turn({ runId }))?.state).toBe('ended');
      await new Promise((resolve) => setTimeout(resolve, 3));
    }
    void ended;
    const page = await host.executor.threads({ callerId: 'ada', limit: 2 });
    expect(page.map(({ id, queued }) => [id, queued])).toEqual([
      ['b', 0],
      ['a', 0],
    ]);
    const next = await host.executor.threads({ callerId: 'ada', after: page.at(-1)?.cursor ?? '' });
    expect(next.map(({ id, callerId, turns, messages, live }) => [id, callerId, turns, messages, live])).toEqual([
      ['t', 'ada', 3, 6, undefined],
    ]);
    expect((await host.executor.threads()).map(({ id }) => id)).toEqual(['c', 'b', 'a', 't']);
  });

  test('has ids of any content, and refuses those that are too long (web 9)', async () => {
    const { host } = threadHost({ store: makeStore() });
    const hostile = ["'; DROP TABLE threads; --", '../../x', '\u0000', '__proto__', 'ä'.repeat(256)];
    for (const id of hostile) {
      const thread = host.executor.thread(id, { agent: host.agent, callerId: id });
      const { runId } = await thread.send({ id, text: id });
      await expect.poll(async () => (await thread.turn({ runId }))?.state).toBe('ended');
      expect((await thread.messages()).map((message) => message.id)[0]).toBe(id);
    }
    const long = 'ä'.repeat(257);
    const agent = host.agent;
    expect(() => host.executor.thread(long, { agent })).toThrow(/at most 512 bytes/);
    expect(() => host.executor.thread('t', { agent, callerId: long })).toThrow(/at most 512 bytes/);
    await expect(host.executor.thread('t', { agent }).send({ id: long, text: 'x' })).rejects.toMatchObject({
      code: 'INVALID_THREAD_ID',
    });
  });

  test.for(['.', '..'])(
    'no thread begins with the id %j, which no URL can name; a stored one continues',
    async (id) => {
      const store = makeStore();
      const { host, thread, ended } = threadHost({ store, script: [reply('one'), reply('two')] });
      const refused = { code: 'INVALID_THREAD_ID', message: expect.stringContaining('no URL can name it') };
      const other = host.executor.thread(id, { agent: host.agent });
      await expect(other.send({ id: 'm', text: 'x' })).rejects.toMatchObject(refused);
      await ended((await thread.send({ id: 'm1', text: 'Hi.' })).runId);
      await expect(thread.fork('m1', id)).rejects.toMatchObject(refused);
      expect(await other.turns()).toEqual([]);
      expect(host.model.calls).toHaveLength(1);
      // As an earlier version could store it.
      const { callerId, id: from } = (await store.threads.list({ limit: 1 }))[0] ?? {};
      await store.threads.fork({ callerId: `${callerId}`, id: `${from}` }, { messageId: 'm1', newId: id });
      const stored = host.executor.thread(id, { agent: host.agent, callerId: `${callerId}` });
      const { runId } = await stored.send({ id: 'm2', text: 'And?' });
      await expect.poll(async () => (await stored.turn({ runId }))?.state).toBe('ended');
      expect(await textsOf(stored)).toEqual(['Hi.', 'one', 'And?', 'two']);
      await stored.delete();
      expect(await stored.turns()).toEqual([]);
    },
  );
});
